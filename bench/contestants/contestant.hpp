// How a contestant talks to the harness, whatever language it is written in.
//
// It is started with words of the form name=value, connects, warms up, and prints `ready`. For every line `go SECONDS`
// on its standard input it then lets its callers work for that long and prints one line of JSON: how many cycles they
// did, how long that took, how much processor time this process used meanwhile, and what else the workload asks for. It
// lives until its input ends, so that the rounds of a run can be interleaved without starting anything anew.
//
// A caller does cycles: acquire, stay inside for `section_us`, release, do something else for `rest_us`. What it saw is
// noted by CLOCK_MONOTONIC, which is the same in all processes, so that the harness can put the visits of all of them
// in order and measure the gaps. A caller that gets the lock when time is up gives it back without staying.
#pragma once

#include "support.hpp"

#include <sys/resource.h>
#include <time.h>
#include <barrier>
#include <functional>
#include <iostream>
#include <map>

namespace holdfast::bench {

// The words of the command line.
class settings {
public:
    settings(int argc, char** argv) {
        for (int i = 1; i < argc; ++i) {
            const std::string_view word = argv[i];
            const std::size_t sign = word.find('=');
            if (sign == std::string_view::npos)
                throw std::runtime_error("not of the form name=value: " + std::string(word));
            values_.emplace(word.substr(0, sign), word.substr(sign + 1));
        }
    }

    std::string text(const std::string& name, const std::string& otherwise = {}) const {
        const auto found = values_.find(name);
        return found == values_.end() ? otherwise : found->second;
    }
    long number(const std::string& name, long otherwise = 0) const {
        const auto found = values_.find(name);
        return found == values_.end() ? otherwise : std::stol(found->second);
    }

private:
    std::map<std::string, std::string> values_;
};

inline double now_us() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

inline void pause_us(long length) {
    if (length > 0) std::this_thread::sleep_for(std::chrono::microseconds(length));
}

// Of this process, all its threads, ended ones too.
inline double processor_time_us() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto total = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    };
    return total(used.ru_utime) + total(used.ru_stime);
}

// One line of JSON, written field by field. Names are ours and need no escapes.
class json_line {
public:
    void add(std::string_view name, double value) { field(name) += number(value); }
    void add(std::string_view name, const std::vector<double>& values) {
        std::string& out = field(name);
        out += '[';
        for (const double each : values) out.append(out.back() == '[' ? "" : ",").append(number(each));
        out += ']';
    }
    void print() const { std::cout << '{' << text_ << '}' << std::endl; }

private:
    std::string& field(std::string_view name) {
        if (!text_.empty()) text_ += ", ";
        return text_.append("\"").append(name).append("\": ");
    }
    static std::string number(double value) {
        char text[64];
        std::snprintf(text, sizeof text, "%.1f", value);
        return text;
    }

    std::string text_;
};

// What one caller did in one slice.
struct diary {
    std::vector<double> taken;    // acquire and release of each cycle, without what lies between
    std::vector<double> entered;  // when it was inside
    std::vector<double> left;     // when it called release
    double late = 0;              // cycles after time was up, which count for nothing but what they cost

    void note(double asked, double inside, double leaving, double outside) {
        taken.push_back(inside - asked + outside - leaving);
        entered.push_back(inside);
        left.push_back(leaving);
    }
};

inline void report_slice(const std::vector<diary>& diaries, double elapsed, double processor_time, bool with_visits) {
    json_line line;
    std::vector<double> taken;
    std::vector<double> shares;
    double late = 0;
    for (const diary& each : diaries) {
        late += each.late;
        taken.insert(taken.end(), each.taken.begin(), each.taken.end());
        shares.push_back(static_cast<double>(each.taken.size()));
    }
    line.add("cycles", static_cast<double>(taken.size()));
    line.add("late_cycles", late);
    line.add("elapsed_us", elapsed);
    line.add("cpu_us", processor_time);
    line.add("shares", shares);
    if (!taken.empty()) {
        line.add("p50_us", median(taken));
        line.add("p99_us", percentile(taken, 99));
    }
    if (with_visits) {
        std::vector<double> entered;
        std::vector<double> left;
        std::vector<double> visitor;
        for (std::size_t i = 0; i < diaries.size(); ++i) {
            entered.insert(entered.end(), diaries[i].entered.begin(), diaries[i].entered.end());
            left.insert(left.end(), diaries[i].left.begin(), diaries[i].left.end());
            visitor.insert(visitor.end(), diaries[i].entered.size(), static_cast<double>(i));
        }
        line.add("entered_us", entered);
        line.add("left_us", left);
        line.add("visitor", visitor);
    }
    line.print();
}

// Callers that block: one thread each. `acquire` and `release` get the caller's number.
struct blocking_cycle {
    std::function<void(std::size_t)> acquire;
    std::function<void(std::size_t)> release;
};

inline void run_blocking_slice(const settings& chosen, const blocking_cycle& cycle, double seconds) {
    const auto callers = static_cast<std::size_t>(chosen.number("callers", 1));
    const long section = chosen.number("section_us");
    const long rest = chosen.number("rest_us");
    std::vector<diary> diaries(callers);
    std::barrier everybody(static_cast<std::ptrdiff_t>(callers) + 1);
    std::atomic<double> end{0};
    const auto work = [&](std::size_t me) {
        everybody.arrive_and_wait();
        everybody.arrive_and_wait();  // `end` is set
        while (now_us() < end) {
            const double asked = now_us();
            cycle.acquire(me);
            const double inside = now_us();
            if (inside < end) pause_us(section);
            const double leaving = now_us();
            cycle.release(me);
            const double outside = now_us();
            if (inside >= end) {
                ++diaries[me].late;
                break;
            }
            diaries[me].note(asked, inside, leaving, outside);
            pause_us(rest);
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < callers; ++i) threads.emplace_back(work, i);
    everybody.arrive_and_wait();
    const double cpu_before = processor_time_us();
    const double start = now_us();
    end = start + seconds * 1e6;
    everybody.arrive_and_wait();
    for (std::thread& each : threads) each.join();
    report_slice(diaries, std::min(now_us() - start, seconds * 1e6), processor_time_us() - cpu_before,
                 chosen.number("visits") != 0);
}

// The conversation with the harness; `slice` works for so many seconds and prints its line.
inline void converse(const std::function<void(double)>& slice) {
    std::cout << "ready" << std::endl;
    for (std::string word; std::cin >> word;) {
        double seconds = 0;
        if (word != "go" || !(std::cin >> seconds)) throw std::runtime_error("the harness said " + word);
        slice(seconds);
    }
}

// main() of a contestant.
inline int compete(int argc, char** argv, const std::function<void(const settings&)>& contestant) {
    try {
        contestant(settings(argc, argv));
        return 0;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s: %s\n", argv[0], problem.what());
        return 1;
    }
}

}  // namespace holdfast::bench
