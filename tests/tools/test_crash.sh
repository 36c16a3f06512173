#!/bin/bash
# A few kills at random moments; tests/tools/crash_test.py makes a hundred and more.
exec python3 "$(dirname "$0")/crash_test.py" --bin "$1" --kills 5
