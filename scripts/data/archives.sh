# Functions of the prepare_*.sh scripts, which source this file: archives are downloaded, checked
# and unpacked. It also answers --help with the comment at the head of the script. Set before:
# program, the script's name; folder; mirror; table, a row for each archive: local name, address
# below the mirror, bytes (-: unknown), checksum (-: none published), who published the checksum.
case ${1:-} in
  -h | --help)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
esac
archives=$folder/archives
work=$folder/work

die() {
  echo "$program: $*" >&2
  exit 1
}
need_tools() {
  local tool
  for tool in "$@"; do command -v "$tool" >/dev/null || die "$tool is not installed"; done
}
bytes_of() { if [ -e "$1" ]; then stat -c %s "$1"; else echo 0; fi; }

# An interrupted download keeps the name .part; curl or wget resumes it, and is retried as long as
# it makes progress.
download_once() {
  if command -v curl >/dev/null; then
    local curl=(curl --fail --location --silent --show-error --connect-timeout 20
                --speed-limit 1000 --speed-time 60) status=0
    "${curl[@]}" --continue-at - --output "$2" "$1" || status=$?
    if [ $status -eq 33 ]; then  # a server that cannot send a part
      status=0
      "${curl[@]}" --output "$2" "$1" || status=$?
    fi
    return $status
  elif command -v wget >/dev/null; then
    wget --quiet --continue --tries=1 --connect-timeout=20 --read-timeout=60 \
      --output-document="$2" "$1"
  else
    echo "neither curl nor wget is installed" >&2
    return 1
  fi
}
download() {  # address, file
  local before
  while before=$(bytes_of "$2"); ! download_once "$1" "$2"; do
    [ "$(bytes_of "$2")" -gt "$before" ] || return 1
  done
}

# Downloads the archives that are missing.
fetch_archives() {
  local missing=() name path bytes file complete reason list
  mkdir -p "$archives"
  while read -r name path bytes _; do
    file=$archives/$name
    [ -s "$file" ] && continue
    echo "$program: $mirror/$path"
    # Resuming a complete download fails too, so test the archive itself.
    complete=yes
    reason=$(download "$mirror/$path" "$file.part" 2>&1) || complete=no
    if gzip -t "$file.part" 2>/dev/null; then
      mv "$file.part" "$file"
      continue
    fi
    reason=${reason##*$'\n'}
    # All bytes are there but they are not an archive: resuming cannot help.
    if [ $complete = yes ] ||
      { [ "$bytes" != - ] && [ "$(bytes_of "$file.part")" -ge "$bytes" ]; }; then
      rm -f "$file.part"
      reason="what came is no whole archive"
    fi
    missing+=("$name ($mirror/$path: ${reason:-it broke off})")
  done <<<"$table"
  if [ ${#missing[@]} -gt 0 ]; then
    list=$(printf '; %s' "${missing[@]}")
    die "could not be downloaded: ${list:2}. Start again to go on, or fetch them elsewhere," \
      "put them into $archives under these names, and start again"
  fi
}

# Compares checksums: with those recorded or accepted before, else with the published ones. Where
# none is published, the first archive is recorded.
check_archives() {
  local sums=$archives/SHA256SUMS name path bytes published source
  local file sum known kind size other answer
  touch "$sums"
  while read -r name path bytes published source; do
    file=$archives/$name
    sum=$(sha256sum "$file" | cut -d' ' -f1)
    known=$(awk -v name="$name" '$2 == name {print $1}' "$sums")
    if [ -n "$known" ]; then
      [ "$sum" = "$known" ] || die "$file has SHA-256 $sum, and $known was recorded in $sums;" \
        "remove the archive to fetch it again"
      continue
    fi
    gzip -t "$file" || die "$file is no whole archive; remove it and start again"
    kind=${published%%:*}
    if [ "$published" = - ]; then
      echo "$program: $name: no checksum is published; its SHA-256 is recorded in $sums"
    elif [ "$("${kind}sum" "$file" | cut -d' ' -f1)" = "${published#*:}" ]; then
      echo "$program: $name: ${kind^^} as published by $source"
    else
      size=$(bytes_of "$file")
      other="$file has $size bytes$([ "$bytes" = - ] || echo " (published: $bytes)")"
      other+=" and not the ${kind^^} ${published#*:} that $source published"
      answer=no
      if [ -t 3 ]; then
        read -r -p "$program: $other; its SHA-256 is $sum. Use it all the same? [y/N] " answer <&3
      fi
      case $answer in
        [yY]*) ;;
        *) die "$other; remove it to fetch it again, or accept it: echo '$sum  $name' >>'$sums'" ;;
      esac
    fi
    echo "$sum  $name" >>"$sums"
  done 3<&0 <<<"$table"
}

# Directories differ between archives, so files are found by name. A file that is there as
# NAME.gz is unpacked.
extract() {  # archive, name of a file in it -> path
  local to=$work/$2 inside
  if [ ! -s "$to" ] || [ "$archives/$1" -nt "$to" ]; then
    inside=$(tar -tzf "$archives/$1" |
      awk -F/ -v name="$2" '$NF == name || $NF == name ".gz"' | head -n 1 || true)
    [ -n "$inside" ] || die "$archives/$1 has no file $2"
    mkdir -p "$work"
    case $inside in
      *.gz) tar -xzOf "$archives/$1" "$inside" | gzip -dc >"$to.part" ;;
      *) tar -xzOf "$archives/$1" "$inside" >"$to.part" ;;
    esac
    touch "$to.part"
    mv "$to.part" "$to"
  fi
  echo "$to"
}
equal_lines() {  # name of a pair of files in the folder, sides
  [ "$(wc -l <"$folder/$1.$2")" -eq "$(wc -l <"$folder/$1.$3")" ] ||
    die "$1: the two sides have unequal numbers of lines"
}
