raise SystemExit(259)
