// Which of a client's nodes leads to which server. Two URLs may lead to one server, spelt in different ways, and a
// server that voted twice could be a majority alone.
#pragma once

#include <string>
#include <vector>

namespace holdfast::api {

class run_claims {
public:
    // `node` has found this run of a server. Empty: it may use it, and no other node may from now on, whether its link
    // lasts or not: a hold may be believed because of it. Otherwise the name of the node that came first.
    std::string claim(const void* node, const std::string& name, const std::string& run_id) {
        if (run_id.empty()) return {};  // the user may not ask
        claim_of_node* own = nullptr;
        for (claim_of_node& each : claims_) {
            if (each.node == node) own = &each;
            if (each.node != node && each.run_id == run_id) return each.name;
        }
        if (own == nullptr) own = &claims_.emplace_back(claim_of_node{node, {}, {}});
        own->name = name;
        own->run_id = run_id;
        return {};
    }

private:
    struct claim_of_node {
        const void* node;
        std::string name;
        std::string run_id;
    };
    std::vector<claim_of_node> claims_;
};

}  // namespace holdfast::api
