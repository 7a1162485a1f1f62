// operator new in all its forms, and containers.
#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <vector>

struct alignas(128) Wide {
    char bytes[128];
};

int main() {
    for (int i = 0; i < 100; i++) {
        delete new int(i);
        delete[] new (std::nothrow) char[50];
        delete new Wide;
    }
    std::map<std::string, std::vector<int>> map;
    for (int i = 0; i < 1000; i++) map["a key that is too long for the small string " + std::to_string(i)].push_back(i);
    return 0;
}
