module seven

go 1.21
