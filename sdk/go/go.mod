module scruple

go 1.22
