package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func number(words map[string]string, name string) int {
	value, err := strconv.Atoi(words[name])
	if err != nil {
		fail(fmt.Errorf("%s: %w", name, err))
	}
	return value
}

// Adds one to the number in the file, slowly enough for another to come in between.
func increment(path string, section time.Duration) {
	text, err := os.ReadFile(path)
	if err != nil {
		fail(err)
	}
	before, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		fail(err)
	}
	time.Sleep(section)
	if err := os.WriteFile(path, []byte(strconv.Itoa(before+1)), 0o600); err != nil {
		fail(err)
	}
}

type result struct {
	Cycles        int     `json:"cycles"`
	LongestWaitMs float64 `json:"longest_wait_ms"`
	Errors        int     `json:"errors"`
	FirstError    string  `json:"first_error"`
}

func (all *result) add(one result) {
	all.Cycles += one.Cycles
	all.LongestWaitMs = max(all.LongestWaitMs, one.LongestWaitMs)
	all.Errors += one.Errors
	if all.FirstError == "" {
		all.FirstError = one.FirstError
	}
}

func (all *result) fail(err error) {
	all.Errors++
	if all.FirstError == "" {
		all.FirstError = err.Error()
	}
}

func work(lock acquire, words map[string]string, end time.Time) (done result) {
	section := time.Duration(number(words, "section_us")) * time.Microsecond
	for time.Now().Before(end) {
		asked := time.Now()
		release, err := lock()
		if err != nil {
			done.fail(err)
			continue
		}
		done.LongestWaitMs = max(done.LongestWaitMs, float64(time.Since(asked).Microseconds())/1e3)
		increment(words["file"], section)
		done.Cycles++
		if err := release(); err != nil {
			done.fail(err)
		}
	}
	return done
}

func run(lock acquire, words map[string]string, seconds float64) {
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var all result
	var guard sync.Mutex
	var threads sync.WaitGroup
	for i := 0; i < number(words, "threads"); i++ {
		threads.Add(1)
		go func() {
			defer threads.Done()
			one := work(lock, words, end)
			guard.Lock()
			defer guard.Unlock()
			all.add(one)
		}()
	}
	threads.Wait()
	text, _ := json.Marshal(all)
	fmt.Println(string(text))
}

func main() {
	words := map[string]string{}
	for _, word := range os.Args[1:] {
		name, value, _ := strings.Cut(word, "=")
		words[name] = value
	}
	lock := of(words["library"], words)
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		command, rest, _ := strings.Cut(lines.Text(), " ")
		if command == "run" {
			seconds, err := strconv.ParseFloat(rest, 64)
			if err != nil {
				fail(err)
			}
			run(lock, words, seconds)
			continue
		}
		release, err := lock() // "hold" and "once"
		if err != nil {
			fail(err)
		}
		fmt.Println("acquired")
		if command == "once" {
			if err := release(); err != nil {
				fail(err)
			}
			fmt.Println("released")
		}
	}
}
