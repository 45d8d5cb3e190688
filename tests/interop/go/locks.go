// Go's locks as workers; ../run has the conversation. One lock object for each cycle, as these libraries are used.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	goredispool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/zeromicro/go-zero/core/logx"
	gozero "github.com/zeromicro/go-zero/core/stores/redis"
)

// acquire waits until the lock is held, and returns what releases it.
type acquire func() (release func() error, err error)

const pause = 10 * time.Millisecond // between two tries, where a library wants to be told

func of(library string, words map[string]string) acquire {
	lease := time.Duration(number(words, "lease_ms")) * time.Millisecond
	background := context.Background()
	address, key := words["address"], words["key"]
	switch library {
	case "go-zero": // tries once; waiting is left to the caller
		logx.Disable()
		server := gozero.MustNewRedis(gozero.RedisConf{Host: address, Type: gozero.NodeType})
		return func() (func() error, error) {
			lock := gozero.NewRedisLock(server, key)
			lock.SetExpire(int(lease / time.Second))
			for {
				held, err := lock.Acquire()
				if err != nil {
					return nil, err
				}
				if held {
					return func() error {
						if ok, err := lock.Release(); err != nil || !ok {
							return errors.Join(errors.New("not released"), err)
						}
						return nil
					}, nil
				}
				time.Sleep(pause)
			}
		}
	case "redsync":
		sync := redsync.New(goredispool.NewPool(goredis.NewClient(&goredis.Options{Addr: address})))
		return func() (func() error, error) {
			mutex := sync.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(1<<30))
			if err := mutex.Lock(); err != nil {
				return nil, err
			}
			return func() error { _, err := mutex.Unlock(); return err }, nil
		}
	case "bsm":
		locks := bsm.New(goredis.NewClient(&goredis.Options{Addr: address}))
		return func() (func() error, error) {
			// Without a deadline it would give up after a lease.
			patient, done := context.WithTimeout(background, time.Hour)
			defer done()
			lock, err := locks.Obtain(patient, key, lease, &bsm.Options{RetryStrategy: bsm.LinearBackoff(pause)})
			if err != nil {
				return nil, err
			}
			return func() error { return lock.Release(background) }, nil
		}
	case "rueidislock": // one key; its locks are at prefix:0:name, and renew themselves
		prefix, name, ok := strings.Cut(key, ":0:")
		if !ok {
			fail(fmt.Errorf("%q is no key of rueidislock", key))
		}
		locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{address}},
			KeyPrefix:    prefix, KeyMajority: 1, KeyValidity: lease, NoLoopTracking: true,
			TryNextAfter: lease, // of one try: a machine that stalls must not fail it
		})
		if err != nil {
			fail(err)
		}
		return func() (func() error, error) {
			_, release, err := locks.WithContext(background, name)
			return func() error { release(); return nil }, err
		}
	}
	fail(fmt.Errorf("no library %q", library))
	return nil
}
