#!/usr/bin/env python3
"""scripts/data/get_data.sh and the aligner of package descriptions, over small lists written by
hand; no network."""
import gzip
import hashlib
import importlib.util
import os
import pathlib
import subprocess
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts/data"


def module(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


aligner, download = module("align_descriptions"), module("download_multi30k")

ENGLISH = """Package: alpha
Description-md5: 11
Description-en: small editor for texts
 This editor is small, e.g. for notes. It starts fast! Does it save?
 Yes, always.
 .
 Features:
  * saves the file
    by itself
  * prints pages
 .
 The last paragraph says nothing new.

Package: beta
Description-md5: 22
Description-en: another small tool
 Only two sentences here. This is the second one.

Package: gamma
Description-md5: 33
Description-en: nobody translated this one
 Text.
"""
GERMAN = """Package: alpha
Description-md5: 11
Description-de: kleiner Editor für Texte
 Dieser Editor ist klein, z. B. für Notizen. Er startet schnell! Speichert er?
 Ja, immer.
 .
 Merkmale:
  * speichert die Datei
    von selbst
  * druckt Seiten
 .
 Der letzte Absatz sagt nichts Neues.

Package: beta
Description-md5: 22
Description-de: noch ein kleines Werkzeug
 Hier steht alles in einem einzigen Satz, der beide umfasst.

Package: delta
Description-md5: 44
Description-de: gibt es auf Englisch nicht
 Text.
"""
EXPECTED = {
    ("small editor for texts", "kleiner Editor für Texte"),
    ("This editor is small, e.g. for notes.", "Dieser Editor ist klein, z. B. für Notizen."),
    ("It starts fast!", "Er startet schnell!"),
    ("Does it save?", "Speichert er?"),
    ("Yes, always.", "Ja, immer."),
    ("Features:", "Merkmale:"),
    ("saves the file by itself", "speichert die Datei von selbst"),
    ("prints pages", "druckt Seiten"),
    ("The last paragraph says nothing new.", "Der letzte Absatz sagt nichts Neues."),
    ("another small tool", "noch ein kleines Werkzeug"),
    # As many paragraphs, not as many sentences: kept whole.
    ("Only two sentences here. This is the second one.",
     "Hier steht alles in einem einzigen Satz, der beide umfasst."),
}


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def lines(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read().splitlines()


def test_pairs():
    with tempfile.TemporaryDirectory() as lists:
        write(lists, "mirror_main_i18n_Translation-en", ENGLISH)
        write(lists, "mirror_main_i18n_Translation-de", GERMAN)
        collected = aligner.pairs_by_split(lists)
        found = set().union(*collected.values())
        assert found == EXPECTED, found ^ EXPECTED


def test_filter():
    assert aligner.usable("a small house", "ein kleines Haus")
    for english, german in (("GNU tar", "GNU tar"), ("", "leer"),
                            ("word", "eins zwei drei vier fünf sechs sieben"),
                            ("1 2 3 4", "1, 2, 3, 4"), ("x " * 81, "y " * 81),
                            ("some text here", "<trans> Text hier")):
        assert not aligner.usable(english, german), (english, german)


def write_package_lists(folder):
    sides = {"en": [], "de": []}
    for i in range(400):
        for language, first, common in (
                ("en", f"the program with number n{i}", f"Shared sentence about topic t{i % 90}."),
                ("de", f"das Programm mit Nummer n{i}", f"Gemeinsamer Satz zum Thema t{i % 90}.")):
            sides[language].append(f"Package: p{i}\nDescription-md5: {i}\nDescription-{language}: "
                                   f"{first}\n {common}\n")
    for language, stanzas in sides.items():
        write(folder, f"x_Translation-{language}", "\n".join(stanzas))


# Many packages that share sentences: all three splits, none sharing a sentence with train.
def test_splits():
    with tempfile.TemporaryDirectory() as folder:
        write_package_lists(folder)
        assert subprocess.run([SCRIPTS / "align_descriptions.py", folder, folder]).returncode == 0
        seen, total = set(), 0
        for split in ("test", "valid", "train"):
            english, german = lines(folder, split + ".en"), lines(folder, split + ".de")
            assert len(english) == len(german) > 0, split
            for pair in zip(english, german):
                assert pair not in seen and pair[0] not in seen, pair
                assert pair[0].split()[-1].strip(".") == pair[1].split()[-1].strip("."), pair
            seen.update(english)
            seen.update(zip(english, german))
            total += len(english)
        assert total <= 490 and len(lines(folder, "train.en")) > 300, total


def test_missing_folders():
    with tempfile.TemporaryDirectory() as folder:
        write_package_lists(folder)
        for arguments in (("nosuch", folder), (folder, f"{folder}/nosuch")):
            done = subprocess.run([SCRIPTS / "align_descriptions.py", *arguments],
                                  capture_output=True, text=True)
            assert (done.returncode == 1 and len(done.stderr.splitlines()) == 1
                    and "nosuch: No such file or directory" in done.stderr), done.stderr


# Sentences of a package in order, none of valid or test in train.
def test_documents():
    with tempfile.TemporaryDirectory() as lists:
        write(lists, "mirror_main_i18n_Translation-en", ENGLISH)
        write(lists, "mirror_main_i18n_Translation-de", GERMAN)
        pairs = sum(aligner.documents_by_split(lists).values(), [])
        assert set(pairs) == EXPECTED | {("", "")}
        first = pairs.index(("small editor for texts", "kleiner Editor für Texte"))
        assert [x for x, _ in pairs[first:first + 4]] == ["small editor for texts",
                                                          "This editor is small, e.g. for notes.",
                                                          "It starts fast!", "Does it save?"]
        assert (pairs[-1] == ("", "")
                and all(any(pair) or any(following) for pair, following in zip(pairs, pairs[1:])))
    with tempfile.TemporaryDirectory() as folder:
        write_package_lists(folder)
        assert subprocess.run([SCRIPTS / "align_descriptions.py", "--documents", folder,
                               folder]).returncode == 0
        seen, total = set(), 0
        for split in ("test", "valid", "train"):
            english, german = lines(folder, split + ".en"), lines(folder, split + ".de")
            assert [not line for line in english] == [not line for line in german], split
            documents = [document.split("\n")
                         for document in "\n".join(english).strip("\n").split("\n\n")]
            assert all(document[0].startswith("the program") for document in documents), split
            assert not seen & set(sum(documents, [])), split
            seen.update(sum(documents, []))
            total += len(documents)
        assert total == 400, total


def get_data(folder, *options, where=None, **environment):
    variables = {k: v for k, v in os.environ.items() if k != "NMT_DATA"} | environment
    done = subprocess.run([SCRIPTS / "get_data.sh", *options, folder], env=variables,
                          capture_output=True, text=True, cwd=where)
    return done.returncode, done.stderr


def test_local():
    with tempfile.TemporaryDirectory() as folder:
        data, target = os.path.join(folder, "data"), os.path.join(folder, "target")
        os.makedirs(os.path.join(data, "multi30k"))
        for name, count in (("train", 5), ("val", 3), ("test2016", 2)):
            for language in ("en", "de"):
                write(os.path.join(data, "multi30k"), f"{name}.{language}",
                      "".join(f"{name} {language} {i}\n" for i in range(count)))
        code, err = get_data(target, NMT_DATA=data)
        assert code == 0 and "5 pairs" in err and data in err, err
        assert lines(target, "test.de") == ["test2016 de 0", "test2016 de 1"]
        assert sorted(os.listdir(target)) == ["SOURCE", "test.de", "test.en", "train.de",
                                              "train.en", "valid.de", "valid.en"]
        assert "already" in get_data(target)[1]  # a second call fetches nothing
        write(os.path.join(data, "multi30k"), "val.de", "one line\n")  # unequal sides are refused
        code, err = get_data(os.path.join(folder, "other"), "--source", "local", NMT_DATA=data)
        assert code == 1 and "local" in err, (code, err)
        assert get_data(target, "--source", "elsewhere")[0] == 2 and get_data("")[0] == 2


# A stand-in for apt-get, which takes a relative folder of lists for one under /var/lib/apt.
FAKE_APT = """#!/usr/bin/env bash
for argument; do
  case $argument in Dir::State::lists=/*) cp "$FAKE_LISTS"/*_Translation-* "${argument#*=}/" ;; esac
done
"""


def test_debian_into_a_relative_folder():
    with tempfile.TemporaryDirectory() as folder:
        write_package_lists(folder)
        programs = os.path.join(folder, "bin")
        os.makedirs(programs)
        write(programs, "apt-get", FAKE_APT)
        os.chmod(os.path.join(programs, "apt-get"), 0o755)
        code, err = get_data("some/data", "--source", "debian", where=folder, FAKE_LISTS=folder,
                             PATH=f"{programs}:{os.environ['PATH']}")
        assert code == 0 and "Debian's package descriptions" in err, err
        assert len(lines(folder, "some/data/train.en")) > 300


def test_download_is_checked():
    packed = gzip.compress(b"one\ntwo\n")
    md5 = hashlib.md5(packed).hexdigest()
    assert download.check("f", packed, 2, md5) == b"one\ntwo\n"
    for wrong in ((packed, 3, md5), (packed + b"x", 2, md5)):
        try:
            download.check("f", *wrong)
        except ValueError:
            continue
        raise AssertionError(wrong)


test_pairs()
test_filter()
test_splits()
test_missing_folders()
test_documents()
test_local()
test_debian_into_a_relative_folder()
test_download_is_checked()
print("passed")
