// The primaries of a Cluster, each reached by a link of its own.
//
// A client of a Cluster sends every command to the owner of its key, and what has no key to anybody. A tool that wants
// to know what each primary says (which keys it has, how it is set up) asks them one by one, over links that follow
// nobody: what is refused there is refused.
#pragma once

#include <holdfast/client.hpp>

#include <map>
#include <string>
#include <vector>

namespace holdfast::cli {

// A server, or a member of a Cluster, that could not be asked.
struct silence {
    std::string server;
    std::string why;
};

bool is_cluster(const client& server);

using member_list = std::vector<const client*>;

class cluster_members {
public:
    // Who is a primary by now; nobody if it is no Cluster. Links to those who were so before are kept: they are good
    // until the next look. Throws holdfast::error if nobody has told who they are.
    member_list look(const client& server);

private:
    std::map<std::string, client> links_;  // by their names
};

}  // namespace holdfast::cli
