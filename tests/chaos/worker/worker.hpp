// The modes of the worker process. A worker reports events on stdout, a line each, and ends when its stdin ends or its
// work is done.
//
// Times are microseconds of CLOCK_BOOTTIME, which all processes of a machine share and which validity is counted on.
// "Believed at t" means that t was read *before* the lease was asked. A process that is stopped between the two asks
// after it continues, so a line never claims a belief that did not exist at its time.
#pragma once

#include <holdfast/holdfast.hpp>

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace holdfast::chaos {

/// The arguments after the mode.
using arguments = std::span<const std::string>;

/// Microseconds of CLOCK_BOOTTIME.
std::int64_t now_us();

/// Writes one line and flushes.
void tell(const std::string& line);

/// Requested when stdin ends.
std::stop_token end_of_input();

/// True while the holder may believe in the lease.
bool believes(const lease& held, const std::stop_token& lost);

milliseconds to_milliseconds(const std::string& text);

/// The words of a text that has spaces between them.
std::vector<std::string> split(const std::string& text);

/// URL NAME FILE THREADS SECONDS: increments the counter in a plain file under the lock. Reports "done <sections>".
int count(arguments given);

/// URL NAME LEASE_MS: acquires, reports "held <us> <token>", then "believes <us>" repeatedly while it believes, "lost
/// <us>" once it does not, and "released <us>" after its input ended.
int hold(arguments given);

/// URL PREFIX LOCKS LEASE_MS MAX_LEASE_MS trusted|mistrusted HOLD_MS [keeps]: a client for each of the locks
/// <prefix>0..., which acquires it for a while again and again. Reports "interval <lock> <from us> <to us> <token>" for
/// every belief and "told <lock> <us> <reason>" for every error, until its input ends; then "done". With "keeps" behind
/// them it keeps its locks.
int crowd(arguments given);

/// URL NAME THREADS CYCLES: one client. Each thread waits for the end of stdin, then acquires and releases the lock
/// CYCLES times. Reports "ready" before and "done" after.
int cycle(arguments given);

/// URL NAME FILE READERS WRITERS SECONDS PREFER: writer threads rewrite a plain file under the lock, reader threads
/// check that it is not torn. Each reports "served <read|write> <sections>" at its end. Fails if the file is torn.
int share(arguments given);

/// URL NAME LEASE_MS HOLDERS read|write: one client acquires HOLDERS holds, each in its own thread. Reports "ready"
/// before, "held <us>" when it has all of them, and "released" when its input has ended and they are released.
int share_hold(arguments given);

/// URL NAME LIMIT LEASE_MS THREADS: threads that take one to three permits again and again. Reports "believes <hold>
/// <us> <permits>" repeatedly while it believes, until its input ends; then "done".
int take_permits(arguments given);

/// "URL URL..." NAME FILE MAX_LEASE_MS: reads, waits and writes the count in a store that checks tokens, under a lock
/// on all these servers, until its input ends. Reports "interval <from us> <to us> <token>" for every belief that led
/// to a write, "late" if the store refused the read, "told <us> <reason>" for every error, then "done <updates>".
int lock_set(arguments given);

/// "URL URL..." DIRECTORY PROCESS SEED THREADS LEASE_MS MAX_LEASE_MS [WORD...]: threads that use locks of all kinds
/// until the input ends, and write what they believe and when to DIRECTORY/PROCESS.history; history.cpp describes its
/// lines. They update stores in DIRECTORY under some of the locks. Words: "no-semaphore"; "order": one of the locks is
/// for looking at the order of arrival, and the process is told who leads; "delay=MS": of one of the mutexes;
/// "trusts-restarts": the clients do, and so break the promise.
int history(arguments given);

}  // namespace holdfast::chaos
