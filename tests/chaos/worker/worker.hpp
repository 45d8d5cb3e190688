// What the tests' processes do, one mode each. They tell what happens on stdout, a line per event, and end
// when their stdin does (or when their work is done).
//
// Times in those lines are microseconds of CLOCK_BOOTTIME, which all processes of a machine share and which
// is the clock that validity is counted on. "Believed at t" means: t was read *before* the lease was asked. A
// process that is stopped between the two asks after it was continued, so a line never claims a belief that
// was not there at its time.
#pragma once

#include <holdfast/holdfast.hpp>

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>

namespace holdfast::chaos {

/// What follows the mode on the command line.
using arguments = std::span<const std::string>;

/// Microseconds of CLOCK_BOOTTIME.
std::int64_t now_us();

/// One line, written at once.
void tell(const std::string& line);

/// Requested when stdin ends.
std::stop_token end_of_input();

/// May the holder still believe in it?
bool believes(const lease& held, const std::stop_token& lost);

milliseconds to_milliseconds(const std::string& text);

/// URL NAME FILE THREADS SECONDS: adds to the counter in a plain file under the lock; tells "done <sections>".
int count(arguments given);

/// URL NAME LEASE_MS: acquires, tells "held <us> <token>", then "believes <us>" again and again while it
/// does, "lost <us>" once it does not, and "released <us>" when its input ends.
int hold(arguments given);

/// URL PREFIX LOCKS LEASE_MS MAX_LEASE_MS trusted|mistrusted HOLD_MS: a client for each of the locks
/// <prefix>0..., which takes it for a while again and again. Tells "interval <lock> <from us> <to us>
/// <token>" of every belief and "told <lock> <us> <reason>" of every error, until its input ends; then "done".
int crowd(arguments given);

/// URL NAME THREADS CYCLES: one client, whose threads each wait for a line on stdin to end, then take and
/// give back the lock so often; tells "ready" before and "done" after.
int cycle(arguments given);

/// URL NAME FILE READERS WRITERS SECONDS PREFER: threads that rewrite a plain file under the lock, and threads that
/// check that nothing in it is torn. Each tells "served <read|write> <sections>" at its end. Fails if something is
/// torn.
int share(arguments given);

/// URL NAME LEASE_MS HOLDERS read|write: acquires so many holds, each in a thread of its own, with one client. Tells
/// "ready" before, "held <us>" when it has all of them, and "released" when its input has ended and they are given
/// back.
int share_hold(arguments given);

/// "URL URL..." NAME FILE MAX_LEASE_MS: reads, waits and writes the count in a store that checks tokens, under a lock
/// on all those servers, until its input ends. Tells "interval <from us> <to us> <token>" of every belief that came to
/// a write, "late" when the store did not even let it read, "told <us> <reason>" of every error, then "done <updates>".
int lock_set(arguments given);

}  // namespace holdfast::chaos
