// Commands of one processor in the order of their issue: what each of them does.
#include "issuer.hpp"

#include <algorithm>

namespace tilewright {

namespace {

constexpr int64_t kPsPerUs = 1'000'000;

int64_t port_ps(int64_t num_bytes, int64_t bytes_per_us) {
    return (num_bytes * kPsPerUs + bytes_per_us - 1) / bytes_per_us;
}

}  // namespace

Issuer::Issuer(const Core& core, const nanobind::handle& spec)
    : core_(core),
      issue_route_(number_of(spec, "issue_route")),
      issue_ps_(number_of(spec, "issue_ps")),
      dispatch_ps_(number_of(spec, "dispatch_ps")),
      window_(number_of(spec, "window")),
      read_route_(number_of(spec, "read_route")),
      read_rate_(number_of(spec, "read_bytes_per_us")),
      write_route_(number_of(spec, "write_route")),
      write_rate_(number_of(spec, "write_bytes_per_us")),
      near_(number_of(spec, "near_bytes"), window_),
      far_(number_of(spec, "far_bytes"), window_),
      hit_ps_(number_of(spec, "hit_ps")),
      walk_ps_(number_of(spec, "walk_ps")),
      graph_(std::make_shared<Graph>()) {}

int64_t Issuer::add_plan(const std::vector<int64_t>& plan) {
    plans_.push_back({{{plan[0], plan[1]}, {plan[2], plan[3]}}, plan[4]});
    return static_cast<int64_t>(plans_.size()) - 1;
}

int64_t Issuer::compute(int64_t number, std::span<const int64_t> operands) {
    const Plan plan = plans_[number];
    const int64_t issued = issue();
    after_.assign(1, issued);
    for (const int64_t operand : operands) {
        Value& value = values_[operand];
        after_.push_back(value.near_bytes == value.num_bytes ? value.task : fetch(value, issued));
    }
    const int64_t near_bytes = std::min(plan.num_bytes, near_.free_bytes());
    near_.take(near_bytes, after_);
    const int64_t done = work(plan);
    const int64_t spilled = plan.num_bytes - near_bytes;
    int64_t task = done;
    if (spilled > 0) {
        if (spilled > far_.free_bytes()) return kNoRoom;
        spilled_bytes_ += spilled;
        after_.assign(1, done);
        far_.take(spilled, after_);
        task = hold(write_route_, port_ps(spilled, write_rate_), dispatch_ps_, after_);
    }
    complete(task);
    for (const int64_t operand : operands) note_use(operand, done);
    return add_value(plan.num_bytes, near_bytes, spilled, task);
}

int64_t Issuer::load(int64_t num_bytes, std::span<const IssuedAccess> accesses,
                     std::span<const int64_t> after, int64_t served) {
    after_.assign(1, issue());
    if (num_bytes > far_.free_bytes()) return kNoRoom;
    far_.take(num_bytes, after_);
    after_.insert(after_.end(), after.begin(), after.end());
    return add_value(num_bytes, 0, num_bytes, access(accesses, served));
}

int64_t Issuer::store(int64_t number, int64_t num_bytes, std::span<const IssuedAccess> accesses,
                      std::span<const int64_t> after, int64_t served) {
    const Staging staging = stage(number, num_bytes);
    if (staging == Staging::kNoRoom) return kNoRoom;
    after_.insert(after_.end(), after.begin(), after.end());
    const int64_t task = access(accesses, served);
    if (number != kNoValue) note_use(number, task);
    if (staging == Staging::kStaged) far_.give(num_bytes, {task});
    return task;
}

int64_t Issuer::update(int64_t plan_number, int64_t number, std::span<const Streamed> operands) {
    const Plan plan = plans_[plan_number];
    const int64_t issued = issue();
    std::vector<int64_t> after{issued};
    for (const Streamed& operand : operands) {
        after.push_back(stream(values_[operand.value], operand.num_bytes, issued));
    }
    if (number != kNoValue) {
        const Value& target = values_[number];
        after.push_back(target.task);
        after.insert(after.end(), target.uses.begin(), target.uses.end());
    } else if (plan.num_bytes > near_.free_bytes()) {
        return kNoRoom;
    } else {
        near_.take(plan.num_bytes, after);
    }
    after_ = std::move(after);
    const int64_t task = work(plan);
    complete(task);
    for (const Streamed& operand : operands) note_use(operand.value, task);
    if (number == kNoValue) return add_value(plan.num_bytes, plan.num_bytes, 0, task);
    touch(number, 0);
    values_[number].task = task;
    values_[number].uses.assign(1, task);  // which comes after all others
    return number;
}

int64_t Issuer::park(int64_t number) {
    const int64_t issued = issue();
    Value& value = values_[number];
    const int64_t num_bytes = value.num_bytes - value.far_bytes;
    if (num_bytes > far_.free_bytes()) return kNoRoom;
    int64_t task = value.task;
    if (num_bytes > 0) {
        after_.assign({issued, value.task});
        far_.take(num_bytes, after_);
        task = hold(write_route_, port_ps(num_bytes, write_rate_), dispatch_ps_, after_);
    }
    complete(task);
    note_use(number, task);
    if (value.near_bytes > 0) near_.give(value.near_bytes, value.uses, in_composite_);
    value.near_bytes = 0;
    value.far_bytes = value.num_bytes;
    value.task = task;
    return task;
}

int64_t Issuer::send(int64_t number, int64_t num_bytes, std::span<const MessageStep> steps) {
    const Staging staging = stage(number, num_bytes);
    if (staging == Staging::kNoRoom) return kNoRoom;
    const int64_t task = take_steps(steps);
    complete(task);
    if (number != kNoValue) note_use(number, task);
    if (staging == Staging::kStaged) far_.give(num_bytes, {task});
    return task;
}

int64_t Issuer::receive(int64_t num_bytes, std::span<const MessageStep> steps) {
    after_.assign(1, issue());
    if (num_bytes > far_.free_bytes()) return kNoRoom;
    far_.take(num_bytes, after_);
    const int64_t task = take_steps(steps);
    complete(task);
    return add_value(num_bytes, 0, num_bytes, task);
}

void Issuer::open_composite() {
    composite_issue_ = issue();
    in_composite_ = true;
}

int64_t Issuer::close_composite() {
    if (!in_composite_) return kNoTask;
    in_composite_ = false;
    if (composite_ends_.empty()) composite_ends_.push_back(composite_issue_);
    const int64_t task = join(composite_ends_);
    composite_ends_.clear();
    for (const int64_t number : touched_) {
        Value& value = values_[number];
        if (value.uses_before == kUntouched) continue;
        value.uses.resize(value.uses_before);
        value.uses.push_back(task);
        value.uses_before = kUntouched;
    }
    touched_.clear();
    complete(task);
    return task;
}

void Issuer::release(int64_t number) {
    Value& gone = values_[number];
    if (gone.near_bytes > 0) near_.give(gone.near_bytes, gone.uses, in_composite_);
    if (gone.far_bytes > 0) far_.give(gone.far_bytes, gone.uses, in_composite_);
    gone.uses.clear();
    gone.uses_before = kUntouched;
    free_values_.push_back(number);
}

void Issuer::finish() {
    if (!under_way_.empty()) {
        tasks_.assign(under_way_.begin(), under_way_.end());
        last_issue_ = join(tasks_);
    }
    under_way_.clear();
    stalls_.clear();  // each of them ends before a command that was under way
    num_values_ = 0;
    free_values_.clear();
    near_.reset();
    far_.reset();
}

// --- parts of commands

int64_t Issuer::issue() {
    if (in_composite_) return composite_issue_;
    after_.clear();
    if (last_issue_ >= 0) after_.push_back(last_issue_);
    if (static_cast<int64_t>(under_way_.size()) == window_) after_.push_back(under_way_.front());
    after_.insert(after_.end(), stalls_.begin(), stalls_.end());
    stalls_.clear();
    last_issue_ = hold(issue_route_, issue_ps_, 0, after_);
    ++num_commands_;
    return last_issue_;
}

void Issuer::complete(int64_t task) {
    if (in_composite_) {
        composite_ends_.push_back(task);
        return;
    }
    if (static_cast<int64_t>(under_way_.size()) == window_) under_way_.pop_front();
    under_way_.push_back(task);
}

void Issuer::note_use(int64_t number, int64_t task) {
    Value& value = values_[number];
    touch(number, static_cast<int64_t>(value.uses.size()));
    value.note_use(task);
    if (!in_composite_) value.forget_uses(window_);
}

// The composite's uses of a value become one when it closes.
void Issuer::touch(int64_t number, int64_t uses_before) {
    if (!in_composite_) return;
    Value& value = values_[number];
    if (value.uses_before == kUntouched) {
        touched_.push_back(number);
        value.uses_before = uses_before;
    }
    value.uses_before = std::min(value.uses_before, uses_before);
}

// The steps of a plan, the first of them after the tasks of after_.
int64_t Issuer::work(const Plan& plan) {
    const int64_t first = hold(plan.steps[0].route, plan.steps[0].hold_ps, dispatch_ps_, after_);
    if (plan.steps[1].hold_ps == 0) return first;
    return hold(plan.steps[1].route, plan.steps[1].hold_ps, dispatch_ps_, {&first, 1});
}

int64_t Issuer::fetch(Value& value, int64_t issued) {
    const int64_t missing = value.num_bytes - value.near_bytes;
    fetch_after_.assign({issued, value.task});
    if (value.near_bytes == 0) {
        value.near_bytes = std::min(missing, near_.free_bytes());
        near_.take(value.near_bytes, fetch_after_);
    }
    const int64_t task =
        hold(read_route_, port_ps(missing, read_rate_), dispatch_ps_, fetch_after_);
    if (value.near_bytes == value.num_bytes) value.task = task;
    return task;
}

// Bytes of a value go by: what of them is far is read, and does not stay near.
int64_t Issuer::stream(const Value& value, int64_t needed_bytes, int64_t issued) {
    const int64_t missing = value.num_bytes - value.near_bytes;
    if (missing == 0) return value.task;
    const int64_t read_bytes = (needed_bytes * missing + value.num_bytes - 1) / value.num_bytes;
    const int64_t after[] = {issued, value.task};
    return hold(read_route_, port_ps(read_bytes, read_rate_), dispatch_ps_, after);
}

// What is to be stored or sent goes to the far space, unless it is there; after_ has what comes
// before the bytes leave.
Issuer::Staging Issuer::stage(int64_t number, int64_t num_bytes) {
    after_.assign(1, issue());
    if (number != kNoValue) {
        const Value& source = values_[number];
        after_.push_back(source.task);
        if (source.far_bytes >= source.num_bytes) return Staging::kFar;
    }
    if (num_bytes > far_.free_bytes()) return Staging::kNoRoom;
    far_.take(num_bytes, after_);
    after_.assign(1, hold(write_route_, port_ps(num_bytes, write_rate_), dispatch_ps_, after_));
    return Staging::kStaged;
}

// Exchanges after the tasks of after_; the task that ends with the last of them.
int64_t Issuer::access(std::span<const IssuedAccess> accesses, int64_t served) {
    tasks_.clear();
    for (const IssuedAccess& each : accesses) {
        Definition task{.kind = Kind::kExchange};
        task.amount = each.num_segments * each.segment_bytes;
        task.delay_ps = dispatch_ps_;
        task.served_effect = served;
        task.tag = each.address;
        if (each.num_segments > 1) {
            task.cut = static_cast<uint32_t>(graph_->cuts.size());
            graph_->cuts.push_back(core_.cut_of(each.segment_bytes, each.stride_bytes));
        }
        access_after_ = after_;
        translate(each.walk, access_after_);
        tasks_.push_back(append(task, each.trip, access_after_));
    }
    const int64_t last = tasks_.size() == 1 ? tasks_[0] : join(tasks_);
    complete(last);
    return last;
}

// Adds what an access waits for until it knows where its pages are.
void Issuer::translate(int64_t walk, std::vector<int64_t>& after) {
    if (walk == num_commands_) {
        if (walks_.empty() || walks_.back().command != walk) {
            walks_.push_back({walk, since_issue(walk_ps_)});
        }
        after.push_back(walks_.back().task);
        return;
    }
    if (hit_ps_ > 0) {
        if (hit_.command != num_commands_) hit_ = {num_commands_, since_issue(hit_ps_)};
        after.push_back(hit_.task);
    }
    // those before the window have ended
    if (walk != kNoWalk && walk > num_commands_ - window_) after.push_back(walk_of(walk));
}

int64_t Issuer::walk_of(int64_t command) const {
    if (walks_.empty() || command < walks_.front().command) return kFirstTask;  // forgotten: ended
    return std::lower_bound(walks_.begin(), walks_.end(), command,
                            [](const Walk& each, int64_t wanted) { return each.command < wanted; })
        ->task;
}

int64_t Issuer::add_value(int64_t num_bytes, int64_t near_bytes, int64_t far_bytes, int64_t task) {
    int64_t number;
    if (free_values_.empty()) {
        number = static_cast<int64_t>(num_values_++);
        if (num_values_ > values_.size()) values_.emplace_back();
    } else {
        number = free_values_.back();
        free_values_.pop_back();
    }
    Value& value = values_[number];
    value.num_bytes = num_bytes;
    value.near_bytes = near_bytes;
    value.far_bytes = far_bytes;
    value.task = task;
    value.uses.assign(1, task);
    value.uses_before = kUntouched;
    touch(number, 0);
    return number;
}

}  // namespace tilewright
