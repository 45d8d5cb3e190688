// Everything a user of the library includes.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/election.hpp>
#include <holdfast/errors.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_all.hpp>
#include <holdfast/lockable.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/options.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/striped_shared_mutex.hpp>
#include <holdfast/watch.hpp>
