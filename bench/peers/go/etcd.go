package main

// etcd's own lock (clientv3/concurrency). Waiters watch the key before theirs. Each caller has a session of its own,
// because a session that has the lock may take it again; a session is kept alive in the background.

import (
	"context"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

var client *clientv3.Client

func connect() {
	var err error
	client, err = clientv3.New(clientv3.Config{Endpoints: []string{chosen["url"]}, DialTimeout: 10 * time.Second})
	must(err)
}

func lockOf(name string) acquire {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
	must(err)
	mutex := concurrency.NewMutex(session, name)
	return func() func() {
		must(mutex.Lock(context.Background()))
		return func() { must(mutex.Unlock(context.Background())) }
	}
}
