#!/usr/bin/env python3
"""Generates a small English-German corpus of correct translations: numbers, dates, clock times and
prices in words, and clauses with German word order (verb second; participles, infinitives and
separable prefixes last; the verb last in subordinate clauses), declension and compounds.

    make_toy_corpus.py --pairs 20000 --seed 1 FOLDER

writes FOLDER/{train,valid,test}.{en,de}. Every sentence of either language occurs once, so
the splits are disjoint. The same arguments give the same bytes. Needs only Python's
standard library."""
import argparse
import pathlib
import random
import sys
import tempfile

EN_SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
            "fifteen sixteen "
            "seventeen eighteen nineteen").split()
EN_TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety".split()
EN_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth",
               "eight": "eighth", "nine": "ninth", "twelve": "twelfth"}
DE_SMALL = ("null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
            "fünfzehn sechzehn "
            "siebzehn achtzehn neunzehn").split()
DE_TENS = ". . zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
DE_ORDINALS = {1: "erst", 3: "dritt", 7: "siebt", 8: "acht"}
MONTHS = [("January", "Januar"), ("February", "Februar"), ("March", "März"), ("April", "April"),
          ("May", "Mai"),
          ("June", "Juni"), ("July", "Juli"), ("August", "August"), ("September", "September"),
          ("October", "Oktober"), ("November", "November"), ("December", "Dezember")]
DAYS = [("Monday", "Montag"), ("Tuesday", "Dienstag"), ("Wednesday", "Mittwoch"),
        ("Thursday", "Donnerstag"),
        ("Friday", "Freitag"), ("Saturday", "Samstag"), ("Sunday", "Sonntag")]

# English, German, gender, plurals.
PEOPLE = [("man", "Mann", "m"), ("woman", "Frau", "f"), ("child", "Kind", "n"),
          ("teacher", "Lehrer", "m"),
          ("doctor", "Ärztin", "f"), ("girl", "Mädchen", "n"), ("boy", "Junge", "m"),
          ("baker", "Bäcker", "m"),
          ("neighbour", "Nachbarin", "f"), ("guest", "Gast", "m"),
          ("grandmother", "Großmutter", "f"),
          ("engineer", "Ingenieurin", "f"), ("painter", "Maler", "m"), ("driver", "Fahrer", "m")]
NAMES = "Anna Peter Maria Thomas Julia Martin Sophie Daniel".split()
THINGS = [("table", "Tisch", "m", "tables", "Tische"), ("lamp", "Lampe", "f", "lamps", "Lampen"),
          ("chair", "Stuhl", "m", "chairs", "Stühle"), ("door", "Tür", "f", "doors", "Türen"),
          ("window", "Fenster", "n", "windows", "Fenster"),
          ("clock", "Uhr", "f", "clocks", "Uhren"),
          ("mirror", "Spiegel", "m", "mirrors", "Spiegel"),
          ("cupboard", "Schrank", "m", "cupboards", "Schränke"),
          ("picture", "Bild", "n", "pictures", "Bilder"),
          ("carpet", "Teppich", "m", "carpets", "Teppiche")]
ROOMS = [("kitchen", "Küchen"), ("garden", "Garten"), ("office", "Büro"), ("school", "Schul"),
         ("hotel", "Hotel"),
         ("bathroom", "Badezimmer"), ("cellar", "Keller")]
FOODS = [("apple", "Apfel", "m", "apples", "Äpfel"), ("egg", "Ei", "n", "eggs", "Eier"),
         ("cake", "Kuchen", "m", "cakes", "Kuchen"), ("pear", "Birne", "f", "pears", "Birnen"),
         ("orange", "Orange", "f", "oranges", "Orangen"),
         ("potato", "Kartoffel", "f", "potatoes", "Kartoffeln")]
PERSON_ADJECTIVES = [("old", "alt"), ("young", "jung"), ("friendly", "freundlich"),
                     ("tired", "müde"), ("tall", "groß")]
THING_ADJECTIVES = [("red", "rot"), ("green", "grün"), ("small", "klein"), ("new", "neu"),
                    ("beautiful", "schön"),
                    ("cheap", "billig"), ("heavy", "schwer"), ("yellow", "gelb")]
# English third person, base, participle; German third person without prefix, prefix,
# infinitive, participle.
VERBS = [("buys", "buy", "bought", "kauft", "", "kaufen", "gekauft"),
         ("sees", "see", "seen", "sieht", "", "sehen", "gesehen"),
         ("finds", "find", "found", "findet", "", "finden", "gefunden"),
         ("sells", "sell", "sold", "verkauft", "", "verkaufen", "verkauft"),
         ("looks for", "look for", "looked for", "sucht", "", "suchen", "gesucht"),
         ("brings", "bring", "brought", "bringt", "", "bringen", "gebracht"),
         ("washes", "wash", "washed", "wäscht", "", "waschen", "gewaschen"),
         ("fetches", "fetch", "fetched", "holt", "ab", "abholen", "abgeholt"),
         ("takes along", "take along", "taken along", "nimmt", "mit", "mitnehmen", "mitgenommen"),
         ("gives back", "give back", "given back", "gibt", "zurück", "zurückgeben",
          "zurückgegeben")]
EATING = ("eats", "eat", "eaten", "isst", "", "essen", "gegessen")
MODALS = [("can", "kann"), ("must", "muss"), ("wants to", "will"), ("may", "darf"),
          ("should", "soll")]
THOUGHTS = [("I know that", "Ich weiß, dass"), ("we believe that", "Wir glauben, dass"),
            ("he says that", "Er sagt, dass"), ("she hopes that", "Sie hofft, dass"),
            ("I am happy because", "Ich bin froh, weil"),
            ("we are laughing because", "Wir lachen, weil"),
            ("nobody asks whether", "Niemand fragt, ob"),
            ("I wonder whether", "Ich frage mich, ob")]


def en_number(n):
    """0 <= n < 1,000,000"""
    if n < 20:
        return EN_SMALL[n]
    if n < 100:
        return EN_TENS[n // 10] + ("-" + EN_SMALL[n % 10] if n % 10 else "")
    if n < 1000:
        return EN_SMALL[n // 100] + " hundred" + (" and " + en_number(n % 100) if n % 100 else "")
    rest = n % 1000
    return (en_number(n // 1000) + " thousand"
            + ((" and " if rest < 100 else " ") + en_number(rest) if rest else ""))


def de_number(n, last="eins"):
    """0 <= n < 1,000,000; `last`: how a final 1 is written, "eins" on its own or "ein"
    before a noun."""
    if n == 1:
        return last
    if n < 20:
        return DE_SMALL[n]
    if n < 100:
        return (de_number(n % 10, "ein") + "und" if n % 10 else "") + DE_TENS[n // 10]
    if n < 1000:
        return de_number(n // 100,
                         "ein") + "hundert" + (de_number(n % 100, last) if n % 100 else "")
    return de_number(n // 1000, "ein") + "tausend" + (de_number(n % 1000, last) if n % 1000 else "")


def en_ordinal(n):
    """1 <= n < 100"""
    head, dash, tail = en_number(n).rpartition("-")
    tail = EN_ORDINALS.get(tail) or (tail[:-1] + "ieth" if tail.endswith("y") else tail + "th")
    return head + dash + tail


def de_ordinal(n, ending):
    """1 <= n < 100"""
    return (DE_ORDINALS.get(n) or de_number(n) + ("t" if n < 20 else "st")) + ending


def en_year(year):
    century, rest = divmod(year, 100)
    if 2000 <= year < 2010:
        return en_number(year)
    if rest == 0:
        return en_number(century) + " hundred"
    return en_number(century) + (" oh " if rest < 10 else " ") + en_number(rest)


def de_year(year):
    if year >= 2000:
        return de_number(year)
    return de_number(year // 100) + "hundert" + (de_number(year % 100) if year % 100 else "")


def clock(hour, minute):
    """1 <= hour <= 12, minute a multiple of 5. German counts to the half hour: 3:25 is "fünf vor
    halb vier"."""
    following = hour % 12 + 1
    names = {5: ("five", "fünf"), 10: ("ten", "zehn"), 15: ("a quarter", "Viertel"),
             20: ("twenty", "zwanzig"), 25: ("twenty-five", None)}
    if minute == 0:
        return en_number(hour) + " o'clock", de_number(hour, "ein") + " Uhr"
    if minute == 30:
        return "half past " + en_number(hour), "halb " + de_number(following)
    past = minute < 30
    en, de = names[minute if past else 60 - minute]
    english = en + (" past " + en_number(hour) if past else " to " + en_number(following))
    if de is None:
        return english, ("fünf vor halb " if past else "fünf nach halb ") + de_number(following)
    return english, de + (" nach " + de_number(hour) if past else " vor " + de_number(following))


def price(euros, cents):
    """At least one of both is positive."""
    english = [f"{en_number(n)} {name}{'' if n == 1 else 's'}"
               for n, name in ((euros, "euro"), (cents, "cent")) if n]
    if not euros:
        return english[0], de_number(cents, "ein") + " Cent"
    return (" and ".join(english),
            de_number(euros, "ein") + " Euro" + (" " + de_number(cents) if cents else ""))


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def declined(article_kind, gender, accusative, adjective, noun):
    """The German noun phrase, nominative or accusative singular."""
    masculine_object = accusative and gender == "m"
    if article_kind == "the":
        head = "den" if masculine_object else {"m": "der", "f": "die", "n": "das"}[gender]
        ending = "en" if masculine_object else "e"
    else:
        head = "einen" if masculine_object else {"m": "ein", "f": "eine", "n": "ein"}[gender]
        ending = "en" if masculine_object else {"m": "er", "f": "e", "n": "es"}[gender]
    if adjective:
        stem = adjective[:-1] if adjective.endswith("e") else adjective
        return f"{head} {stem}{ending} {noun}"
    return f"{head} {noun}"


class Maker:
    """Draws pairs; every method returns (English, German)."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, things):
        return things[self.random.randrange(len(things))]

    def chance(self, probability):
        return self.random.random() < probability

    def date(self, ending):
        day, month = self.random.randrange(1, 29), self.pick(MONTHS)
        english, german = (f"the {en_ordinal(day)} of {month[0]}",
                           f"{de_ordinal(day, ending)} {month[1]}")
        if self.chance(0.6):
            year = self.random.randrange(1900, 2060)
            english, german = f"{english} {en_year(year)}", f"{german} {de_year(year)}"
        return english, german

    def clock(self):
        return clock(self.random.randrange(1, 13), self.random.randrange(0, 60, 5))

    def price(self):
        cents = self.random.randrange(5, 100, 5) if self.chance(0.5) else 0
        return price(self.random.randrange(1, 100 if self.chance(0.7) else 2000), cents)

    def thing(self, food=None):
        """(English, German, gender, plurals) of a thing; things other than food may be
        compounds."""
        if self.chance(0.35) if food is None else food:
            return self.pick(FOODS)
        english, german, gender, english_plural, german_plural = self.pick(THINGS)
        if self.chance(0.5):
            room = self.pick(ROOMS)
            return (f"{room[0]} {english}", room[1] + german.lower(), gender,
                    f"{room[0]} {english_plural}", room[1] + german_plural.lower())
        return english, german, gender, english_plural, german_plural

    def subject(self):
        if self.chance(0.25):
            name = self.pick(NAMES)
            return name, name
        noun, adjective = (self.pick(PEOPLE),
                           self.pick(PERSON_ADJECTIVES) if self.chance(0.5) else ("", ""))
        english = f"{adjective[0]} {noun[0]}".strip()
        kind = "the" if self.chance(0.7) else "a"
        return ("the " + english if kind == "the" else article(english),
                declined(kind, noun[2], False, adjective[1], noun[1]))

    def object(self, noun, accusative=True, counted=True):
        adjective = self.pick(THING_ADJECTIVES) if self.chance(0.5) else ("", "")
        if counted and self.chance(0.3):
            n = self.random.randrange(2, 100)
            german_adjective = adjective[1] + "e " if adjective[1] else ""
            return (" ".join(filter(None, (en_number(n), adjective[0], noun[3]))),
                    f"{de_number(n)} {german_adjective}{noun[4]}")
        english = f"{adjective[0]} {noun[0]}".strip()
        kind = "the" if self.chance(0.6) else "a"
        return ("the " + english if kind == "the" else article(english),
                declined(kind, noun[2], accusative, adjective[1], noun[1]))

    def time(self, past):
        kind = self.random.random()
        if kind < 0.4:
            english, german = self.clock()
            return "at " + english, "um " + german
        if kind < 0.6:
            english, german = self.date("en")
            return "on " + english, "am " + german
        if kind < 0.75:
            day = self.pick(DAYS)
            return "on " + day[0], "am " + day[1]
        if kind < 0.9:
            return self.pick([("in the morning", "am Morgen"), ("in the evening", "am Abend"),
                              ("at night", "in der Nacht")])
        return (("yesterday", "gestern") if past
                else self.pick([("today", "heute"), ("tomorrow", "morgen")]))

    def clause(self):
        """The parts of a clause: the subject in both languages; verb, object and time in English;
        finite verb, time, object, participle or infinitive, and separable prefix in German."""
        food = self.chance(0.35)
        verb = EATING if food and self.chance(0.5) else self.pick(VERBS)
        subject, thing = self.subject(), self.object(self.thing(food))
        tense = self.random.random()
        english_thing, middle = thing
        if verb[1] in ("buy", "sell") and self.chance(0.6):
            cost = self.price()
            english_thing, middle = f"{english_thing} for {cost[0]}", f"{middle} für {cost[1]}"
        particle = ""
        for word in (" along", " back"):
            if verb[1].endswith(word):
                particle = word
        bare = [form.removesuffix(particle) for form in verb[:3]]
        if tense < 0.5:
            english_verb, finite, end, prefix = bare[0], verb[3], "", verb[4]
            time = self.time(False)
        elif tense < 0.75:
            english_verb, finite, end, prefix = "has " + bare[2], "hat", verb[6], ""
            time = self.time(True)
        else:
            modal = self.pick(MODALS)
            english_verb, finite, end, prefix = f"{modal[0]} {bare[1]}", modal[1], verb[5], ""
            time = self.time(False)
        return (subject, (english_verb, english_thing + particle, time[0]),
                (finite, time[1], middle, end, prefix))

    def main_clause(self):
        subject, (verb, thing, when), (finite, time, middle, end, prefix) = self.clause()
        if self.chance(0.4):  # time first: the German verb stays second
            english = f"{when} {subject[0]} {verb} {thing}"
            german = [time, finite, subject[1], middle, end or prefix]
        else:
            english = f"{subject[0]} {verb} {thing} {when}"
            german = [subject[1], finite, time, middle, end or prefix]
        return english + ".", " ".join(filter(None, german)) + "."

    def subordinate_clause(self):
        subject, (verb, thing, when), (finite, time, middle, end, prefix) = self.clause()
        thought = self.pick(THOUGHTS)
        # the finite verb with its prefix last
        german = [thought[1], subject[1], time, middle, end, prefix + finite]
        return (f"{thought[0]} {subject[0]} {verb} {thing} {when}.",
                " ".join(filter(None, german)) + ".")

    def number_sentence(self):
        n = self.random.randrange(10 ** self.random.randrange(1, 7))
        english, german = en_number(n), de_number(n)
        frame = self.pick([("the number is {}.", "Die Zahl ist {}."),
                           ("{} is the answer.", "{} ist die Antwort."),
                           ("please count to {}.", "Bitte zähle bis {}.")])
        return frame[0].format(english), frame[1].format(german)

    def date_sentence(self):
        english, german = self.date("e")
        frame = self.pick([("today is {}.", "Heute ist der {}."),
                           ("tomorrow is {}.", "Morgen ist der {}."),
                           ("yesterday was {}.", "Gestern war der {}.")])
        return frame[0].format(english), frame[1].format(german)

    def clock_sentence(self):
        english, german = self.clock()
        frame = self.pick([("it is {}.", "Es ist {}."),
                           ("the train leaves at {}.", "Der Zug fährt um {} ab."),
                           ("at {} the shop closes.", "Um {} schließt das Geschäft.")])
        return frame[0].format(english), frame[1].format(german)

    def price_sentence(self):
        thing, cost = self.object(self.thing(), accusative=False, counted=False), self.price()
        return f"{thing[0]} costs {cost[0]}.", f"{thing[1]} kostet {cost[1]}."

    def pair(self):
        kinds = [(0.4, self.main_clause), (0.65, self.subordinate_clause),
                 (0.75, self.number_sentence),
                 (0.85, self.date_sentence), (0.87, self.clock_sentence),
                 (1.0, self.price_sentence)]
        draw = self.random.random()
        pair = next(make for limit, make in kinds if draw < limit)()
        return tuple(text[0].upper() + text[1:] for text in pair)


def make_pairs(count, seed):
    """`count` pairs with distinct sentences in both languages."""
    maker, pairs, seen = Maker(seed), [], (set(), set())
    for _ in range(50 * count + 1000):
        if len(pairs) == count:
            break
        pair = maker.pair()
        if not any(text in known for text, known in zip(pair, seen)):
            pairs.append(pair)
            for text, known in zip(pair, seen):
                known.add(text)
    if len(pairs) < count:
        sys.exit(f"make_toy_corpus.py: only {len(pairs)} of {count} distinct pairs exist")
    return pairs


def write(folder, files, sizes, pairs):
    """Writes all files, and then gives them their names."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".make_toy_corpus.") as aside:
        for name, size in sizes.items():
            part, pairs = pairs[:size], pairs[size:]
            for side, language in enumerate(("en", "de")):
                text = "".join(pair[side] + "\n" for pair in part)
                pathlib.Path(aside, files[name, language].name).write_text(text, encoding="utf-8",
                                                                           newline="\n")
        for path in files.values():
            pathlib.Path(aside, path.name).replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path,
                        help="output directory; created if missing")
    parser.add_argument("--pairs", type=int, default=20000, help="training pairs (%(default)s)")
    parser.add_argument("--valid", type=int, default=200, help="validation pairs (%(default)s)")
    parser.add_argument("--test", type=int, default=200, help="test pairs (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (%(default)s)")
    options = parser.parse_args()
    sizes = {"valid": options.valid, "test": options.test, "train": options.pairs}
    for name, size in sizes.items():
        if size < 1:
            parser.error(f"{name}: {size} pairs, expected at least 1")
    files = {(name, language): options.folder / f"{name}.{language}" for name in sizes
             for language in ("en", "de")}
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        for path in files.values():
            if path.exists() and not path.is_file():
                parser.error(f"{path}: is no regular file")
        pairs = make_pairs(sum(sizes.values()), options.seed)
        write(options.folder, files, sizes, pairs)
    except OSError as error:
        parser.error(f"{error.filename or options.folder}: {error.strerror}")


if __name__ == "__main__":
    main()
