// What the contestants in Go share; see contestants/contestant.hpp for the conversation. Each is built of this file and
// one with its locks, which has connect() and lockOf().
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var chosen = map[string]string{}

func number(name string, otherwise int) int {
	if value, err := strconv.Atoi(chosen[name]); err == nil {
		return value
	}
	return otherwise
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func nowMicros() float64 {
	var now unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return float64(now.Sec)*1e6 + float64(now.Nsec)/1e3
}

func processorMicros() float64 {
	var used unix.Rusage
	must(unix.Getrusage(unix.RUSAGE_SELF, &used))
	return float64(used.Utime.Sec+used.Stime.Sec)*1e6 + float64(used.Utime.Usec+used.Stime.Usec)
}

// acquire waits until the lock is held, and returns what releases it and waits for the answer.
type acquire func() (release func())

type caller struct {
	acquire              acquire
	taken, entered, left []float64
	late                 int
}

func (c *caller) work(end float64) {
	c.taken, c.entered, c.left, c.late = nil, nil, nil, 0
	section := time.Duration(number("section_us", 0)) * time.Microsecond
	rest := time.Duration(number("rest_us", 0)) * time.Microsecond
	for nowMicros() < end {
		asked := nowMicros()
		release := c.acquire()
		inside := nowMicros()
		if inside < end {
			time.Sleep(section)
		}
		leaving := nowMicros()
		release()
		outside := nowMicros()
		if inside >= end {
			c.late++
			return
		}
		c.taken = append(c.taken, inside-asked+outside-leaving)
		c.entered = append(c.entered, inside)
		c.left = append(c.left, leaving)
		time.Sleep(rest)
	}
}

func run(callers []*caller, seconds float64) {
	cpu, start := processorMicros(), nowMicros()
	var everybody sync.WaitGroup
	for _, each := range callers {
		everybody.Add(1)
		go func(c *caller) {
			defer everybody.Done()
			c.work(start + seconds*1e6)
		}(each)
	}
	everybody.Wait()
	elapsed := nowMicros() - start
	if elapsed > seconds*1e6 {
		elapsed = seconds * 1e6
	}
	taken, entered, left := []float64{}, []float64{}, []float64{}
	shares, visitor, late := []int{}, []int{}, 0
	for i, each := range callers {
		taken = append(taken, each.taken...)
		entered = append(entered, each.entered...)
		left = append(left, each.left...)
		shares = append(shares, len(each.taken))
		late += each.late
		for range each.entered {
			visitor = append(visitor, i)
		}
	}
	sort.Float64s(taken)
	result := map[string]interface{}{"cycles": len(taken), "late_cycles": late, "elapsed_us": elapsed,
		"cpu_us": processorMicros() - cpu, "shares": shares}
	if len(taken) > 0 {
		result["p50_us"], result["p99_us"] = taken[len(taken)/2], taken[len(taken)*99/100]
	}
	if chosen["visits"] == "1" {
		result["entered_us"], result["left_us"], result["visitor"] = entered, left, visitor
	}
	line, err := json.Marshal(result)
	must(err)
	fmt.Println(string(line))
}

func main() {
	for _, word := range os.Args[1:] {
		parts := strings.SplitN(word, "=", 2)
		chosen[parts[0]] = parts[1]
	}
	connect()
	callers := make([]*caller, number("callers", 1))
	for i := range callers {
		name := "bench"
		if chosen["names"] != "one" {
			name = fmt.Sprintf("bench:%d:%d", number("process", 0), i)
		}
		callers[i] = &caller{acquire: lockOf(name)}
	}
	fmt.Println("ready")
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		seconds, err := strconv.ParseFloat(strings.Fields(input.Text())[1], 64)
		must(err)
		run(callers, seconds)
	}
}
