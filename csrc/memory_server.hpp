// A memory at the end of routes: what the core needs of it, whichever model serves it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "banked.hpp"
#include "slab.hpp"

namespace tilewright {

struct AccessRequest {
    bool is_write;
    int64_t address;
    int64_t num_bytes;
};

// It decides late, but in time: see BankedCore.
class MemoryServer {
  public:
    explicit MemoryServer(int64_t capacity) : capacity_bytes(capacity) {}
    virtual ~MemoryServer() = default;

    virtual bool has_room(int64_t now_ps, const AccessRequest& access) = 0;
    // Tells when to wake for it.
    virtual int64_t accept(int64_t now_ps, int64_t id, const AccessRequest& access,
                           uint32_t packet) = 0;
    virtual int64_t wake_ps() const = 0;  // -1: nothing to decide
    virtual const std::vector<Completion>& advance(int64_t now_ps) = 0;
    virtual const std::vector<Completion>& catch_up(int64_t now_ps) = 0;
    virtual std::vector<std::vector<int64_t>> counters() const = 0;
    virtual std::vector<std::vector<int64_t>> openings() const = 0;
    // From now until an access is served about which nothing is decided.
    virtual int64_t least_service_ps(bool is_write) const = 0;
    // When a read that is not decided is served at the earliest; what lies before now is decided.
    virtual int64_t least_read_ps(int64_t now_ps, int64_t id, int64_t address,
                                  int64_t num_bytes) = 0;

    int64_t capacity_bytes;
    uint32_t server = kNone;
    uint32_t num_inside = 0;   // packets
    uint32_t num_foreign = 0;  // of these, on an island to which they do not belong
    AccessRequest looked_at{};  // the last one at its door that asked for room, if it is there
    int64_t looked_at_id = -1;
    int64_t decide_ps = -1;  // when it next decides, -1 for never
    int64_t retry_ps = -1;   // when a packet at its door may find room, -1 for never
    int64_t blocked_id = -1;  // the last packet that found none, while that is sure to stay so
    int64_t room_ps = -1;     // the earliest that it could find some
};

template <typename Model>
class MemoryOf final : public MemoryServer {
  public:
    template <typename... Args>
    explicit MemoryOf(int64_t capacity, Args&&... args)
        : MemoryServer(capacity), model_(std::forward<Args>(args)...) {}

    bool has_room(int64_t now_ps, const AccessRequest& access) override {
        const Room room =
            model_.find_room(now_ps, access.is_write, access.address, access.num_bytes);
        room_ps = room.at_ps;
        return model_.is_there(room, now_ps);
    }
    int64_t accept(int64_t now_ps, int64_t id, const AccessRequest& access,
                   uint32_t packet) override {
        return model_.accept(now_ps, id, access.is_write, access.address, access.num_bytes,
                             packet);
    }
    int64_t wake_ps() const override { return model_.wake_ps(); }
    const std::vector<Completion>& advance(int64_t now_ps) override {
        return model_.advance(now_ps);
    }
    const std::vector<Completion>& catch_up(int64_t now_ps) override {
        return model_.catch_up(now_ps);
    }
    std::vector<std::vector<int64_t>> counters() const override { return model_.counters(); }
    std::vector<std::vector<int64_t>> openings() const override { return model_.openings(); }
    int64_t least_service_ps(bool is_write) const override {
        return model_.least_service_ps(is_write);
    }
    int64_t least_read_ps(int64_t now_ps, int64_t id, int64_t address,
                          int64_t num_bytes) override {
        return model_.least_read_ps(now_ps, id, address, num_bytes);
    }

  private:
    Model model_;
};

}  // namespace tilewright
