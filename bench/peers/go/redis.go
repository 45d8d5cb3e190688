package main

// redsync (on redigo) and rueidislock.
//
// redsync cannot be woken: a waiter sleeps and tries again, here every 10 ms (its default is 50 to 250). rueidislock has
// the server tell it when a key changes, and then competes. Its default is a majority of three keys on one server; here
// it has one key, which is what the others have.

import (
	"context"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncdriver "github.com/go-redsync/redsync/v4/redis"
	driver "github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

const lease = 30 * time.Second

var (
	sync4  *redsync.Redsync
	locker rueidislock.Locker
)

func dial(url string) func() (redis.Conn, error) {
	if path, isUnix := strings.CutPrefix(url, "unix://"); isUnix {
		return func() (redis.Conn, error) { return redis.Dial("unix", path) }
	}
	return func() (redis.Conn, error) { return redis.DialURL(url) }
}

func connect() {
	urls := strings.Split(chosen["url"], ",")
	if chosen["library"] == "redsync" {
		var pools []redsyncdriver.Pool
		for _, url := range urls {
			// A connection for each caller, kept.
			pools = append(pools, driver.NewPool(&redis.Pool{MaxIdle: number("callers", 1), Dial: dial(url)}))
		}
		sync4 = redsync.New(pools...)
		return
	}
	server, err := rueidis.ParseURL(urls[0])
	must(err)
	locker, err = rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: server, KeyMajority: 1, KeyValidity: lease, NoLoopTracking: true,
		TryNextAfter: time.Minute, // of a try: a machine that stalls must not fail it
	})
	must(err)
}

func lockOf(name string) acquire {
	background := context.Background()
	if chosen["library"] == "redsync" {
		mutex := sync4.NewMutex(name, redsync.WithExpiry(lease), redsync.WithTries(1<<30), redsync.WithRetryDelay(10*time.Millisecond))
		return func() func() {
			must(mutex.Lock())
			return func() { _, err := mutex.Unlock(); must(err) }
		}
	}
	return func() func() {
		_, release, err := locker.WithContext(background, name)
		must(err)
		return release
	}
}
