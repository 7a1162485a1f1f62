// operator new in its forms, and containers.
#include <map>
#include <new>
#include <string>
#include <vector>

struct alignas(64) Wide {
    char bytes[64];
};

static void *volatile kept;

void *operator_new(std::size_t size) {
    void *block = ::operator new(size);
    kept = block;
    return block;
}

int main() {
    ::operator delete(operator_new(0));
    ::operator delete(operator_new(24));
    delete[] new char[77];
    delete new Wide;
    ::operator delete(::operator new(std::size_t(1) << 60, std::nothrow));
    std::map<int, std::string> map;
    for (int i = 0; i < 200; i++) map[i] = std::string(40, 'x');
    std::vector<int> vector;
    for (int i = 0; i < 1000; i++) vector.push_back(i);
    return map.size() + vector.size() == 0;
}
