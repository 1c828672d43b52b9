// A memory at the end of routes: what the core needs of it, whichever model serves it.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "banked.hpp"
#include "slab.hpp"

namespace tilewright {

struct AccessRequest {
    bool is_write;
    int64_t address;
    int64_t num_bytes;
};

class MemoryServer {
  public:
    explicit MemoryServer(int64_t capacity) : capacity_bytes(capacity) {}
    virtual ~MemoryServer() = default;

    virtual bool can_accept(int64_t now_ps, const AccessRequest& access) const = 0;
    virtual int64_t room_ps(const AccessRequest& access) const = 0;  // -1: not decided yet
    virtual void accept(int64_t now_ps, int64_t id, const AccessRequest& access) = 0;
    virtual int64_t next_ps() const = 0;  // -1: nothing to decide
    virtual const std::vector<Completion>& advance(int64_t now_ps) = 0;
    virtual std::vector<std::vector<int64_t>> counters() const = 0;

    int64_t capacity_bytes;
    int64_t decide_ps = -1;  // when it next decides, -1 for never
    std::unordered_map<int64_t, uint32_t> packets;  // that it serves, by access
};

template <typename Model>
class MemoryOf : public MemoryServer {
  public:
    template <typename... Args>
    explicit MemoryOf(int64_t capacity, Args&&... args)
        : MemoryServer(capacity), model_(std::forward<Args>(args)...) {}

    bool can_accept(int64_t now_ps, const AccessRequest& access) const override {
        return model_.can_accept(now_ps, access.is_write, access.address, access.num_bytes);
    }
    int64_t room_ps(const AccessRequest& access) const override {
        return model_.room_ps(access.is_write, access.address, access.num_bytes);
    }
    void accept(int64_t now_ps, int64_t id, const AccessRequest& access) override {
        model_.accept(now_ps, id, access.is_write, access.address, access.num_bytes);
    }
    int64_t next_ps() const override { return model_.next_ps(); }
    const std::vector<Completion>& advance(int64_t now_ps) override {
        return model_.advance(now_ps);
    }
    std::vector<std::vector<int64_t>> counters() const override { return model_.counters(); }

  private:
    Model model_;
};

}  // namespace tilewright
