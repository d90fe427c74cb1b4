# Prints what the failed tests of a "go test -v" log said, each test's lines together, so that
# they are found at once in a log of many thousand lines. "go test -v" names the test that the
# next lines are of ("=== NAME  TestX"); the verdict ("--- FAIL: TestX") comes after them.
# Without -v the lines follow the verdict; both forms are understood.

# most is how many lines of one test are printed.
BEGIN { most = 80 }

/^=== (RUN|PAUSE|CONT|NAME) / { test = $3; next }

/^ *--- (PASS|FAIL|SKIP): / {
  test = $3
  if ($2 == "FAIL:") { order[++failures] = test; verdict[failures] = $0 }
  next
}

# The end of a package.
/^(ok|FAIL)[ \t]+[^ \t]+[ \t]/ { if ($1 == "FAIL") report(); forget(); next }

/^(PASS|FAIL)$/ { next }

# Errors of the compiler come before all tests.
/^# / { test = "(build)" }

# A crash, or a run that took too long: no test may have a verdict.
/^(panic:|fatal error:|SIG[A-Z]+:)/ && !crash { test = "(crash)"; crash = 1 }

{ if (++count[test] <= most) lines[test] = lines[test] $0 "\n" }

function report(   i, name, j, parent) {
  print "=== failed in " $2
  for (i = 1; i <= failures; i++) {
    name = order[i]
    # Of a test whose subtests failed, only what it said itself is of interest.
    parent = 0
    for (j = 1; j <= failures; j++) if (index(order[j], name "/") == 1) parent = 1
    if (parent && !count[name]) continue
    print verdict[i]
    show(name)
  }
  if (crash) show("(crash)")
  if (/(build|setup) failed/) show("(build)")
  else if (!failures && !crash) show("")
}

function show(name) {
  printf "%s", lines[name]
  if (count[name] > most) print "    … and " (count[name] - most) " more lines"
}

function forget(   name) {
  for (name in lines) if (name != "(build)") { delete lines[name]; delete count[name] }
  split("", order); split("", verdict)
  failures = 0; crash = 0; test = ""
}

# A run that was killed has no last line.
END { if (failures || crash) { $2 = "the package that was running"; report() } }
