// The note that a run gives when it is not told another one: its command line, without secrets.
#pragma once

#include <string>
#include <vector>

namespace holdfast::cli {

// What looks like a secret is replaced by "***", and a long line is cut. Everybody who may look at the locks reads the
// note, so a word too many is hidden rather than one too few:
//   - the value of an option or variable whose name speaks of a password, token, key, secret, credential or the like:
//     --password X, --api-key=X, TOKEN=X, ?token=X, "Authorization: X"; and -pX, as mysql has it
//   - the password of a URL, and of user:password behind -u and --user
//   - long words that mix letters and digits like generated keys
std::string note_of_command(const std::vector<std::string>& words);

}  // namespace holdfast::cli
