// maps N: a map of strings to vectors, grown and half emptied.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

int main(int argc, char **argv) {
    std::map<std::string, std::vector<int>> map;
    long n = argc > 1 ? atol(argv[1]) : 1;
    for (long i = 0; i < n; i++) {
        auto &vector = map["some key that does not fit " + std::to_string(i * 7919 % n)];
        for (int k = 0; k < 5; k++) vector.push_back(k);
    }
    for (long i = 0; i < n; i += 2) map.erase("some key that does not fit " + std::to_string(i));
    return map.size() == 0;
}
