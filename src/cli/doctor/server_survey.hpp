// All that the doctor asks a server, asked at once.
#pragma once

#include "cli/doctor/server_product.hpp"
#include "cli/inspect/servers/ask.hpp"
#include "cli/server/server_choice.hpp"
#include "wire/keys.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// A right that is missing, and whether locks work without it.
struct missing_right {
    std::string command;
    std::string reason;  // as the server says it
    bool is_needed = true;
};

enum class server_kind { alone, member };  // of a Cluster

struct survey_terms {
    server_origin origin = server_origin::named;  // the local one is as we have made it
    std::string prefix = std::string(wire::default_prefix);
    std::chrono::milliseconds max_lease{0};
    std::size_t servers = 1;  // all that are named, this one included
    server_kind kind = server_kind::alone;
};

// Which commands and keys that locks need are closed to this user.
//
// Nothing runs: the commands are queued in a MULTI that is discarded. The server checks the rights of a command when it
// queues it, so every answer but QUEUED tells something. The probe tries exactly what the library sends: its own list,
// which a test compares with the sources, and the commands that it finds in the scripts. A member of a Cluster checks
// rights before it checks who owns the key.
struct rights_probe {
    std::vector<missing_right> missing;
    std::optional<std::string> unprobed;  // why it could not be done
};

rights_probe probe_rights(const client& server, const survey_terms& terms);
// The commands, with their subcommands, that the probe tries beside those of the scripts.
std::set<std::string> probed_commands(server_kind kind);

class server_survey {
public:
    // Throws holdfast::error if the server cannot be asked at all. Changes nothing there.
    server_survey(const client& server, survey_terms which);

    // A field of INFO; nothing if it is not there or may not be asked.
    std::optional<std::string> info(std::string_view field) const { return info_field(info_, field); }
    std::optional<std::int64_t> info_number(std::string_view field) const;
    // The same of CLUSTER INFO.
    std::optional<std::string> cluster_info(std::string_view field) const { return info_field(cluster_info_, field); }
    // A setting of CONFIG; nothing if it may not be asked.
    std::optional<std::string> setting(std::string_view name) const;
    std::optional<std::int64_t> setting_number(std::string_view name) const;

    survey_terms terms;
    server_product product;
    // What the server says to a script that it does not know.
    std::string script_refusal;
    // HELLO is refused, so the connection speaks RESP2.
    bool lacks_resp3 = false;
    rights_probe rights;
    std::chrono::microseconds skew{0};  // the server's clock less ours
    std::chrono::microseconds skew_error{0};
    std::vector<std::chrono::microseconds> round_trips;  // sorted
    // Fencing marks: as many of a bounded sample of keys as would be of all. Nothing if keys may not be looked at.
    struct mark_estimate {
        std::int64_t marks = 0;
        std::int64_t bytes = 0;
        std::int64_t keys = 0;     // on the server
        std::int64_t sampled = 0;  // of them
    };
    std::optional<mark_estimate> marks;

private:
    void ask_settings(const client& server);
    void ask_time(const client& server);
    void ask_latency(const client& server);
    void estimate_marks(const client& server);

    std::string info_;
    std::string cluster_info_;
    std::map<std::string, std::string, std::less<>> settings_;
};

}  // namespace holdfast::cli
