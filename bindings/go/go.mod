module github.com/dtg-project/dtg/bindings/go

go 1.24
