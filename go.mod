module fermata

go 1.26
