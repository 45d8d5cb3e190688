module holdfast/bench

go 1.24.0

require (
	github.com/go-redsync/redsync/v4 v4.15.0 // indirect
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/redis/rueidis v1.0.69 // indirect
	golang.org/x/sys v0.31.0 // indirect
)
