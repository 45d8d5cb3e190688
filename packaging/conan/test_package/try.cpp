// Needs no server: that an error of the library is known as such shows that headers and library fit.
#include <holdfast/holdfast.hpp>

int main() try {
    holdfast::client nowhere{"no-such-scheme://here"};
    return 1;
} catch (const holdfast::error& failure) {
    return failure.condition() == holdfast::errc::bad_url ? 0 : 1;
}
