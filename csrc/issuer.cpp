// Commands of one processor in the order of their issue.
#include "issuer.hpp"

#include <algorithm>

namespace nb = nanobind;

namespace tilewright {

namespace {

constexpr int64_t kPsPerUs = 1'000'000;
constexpr int64_t kNoRoom = -1;
constexpr int64_t kNoValue = -1;
constexpr int64_t kNoTask = -1;
constexpr int64_t kFromStart = -1;

int64_t integer(PyObject* value) { return PyLong_AsLongLong(value); }

int64_t port_ps(int64_t num_bytes, int64_t bytes_per_us) {
    return (num_bytes * kPsPerUs + bytes_per_us - 1) / bytes_per_us;
}

Span read_signals(std::vector<SignalAmount>& signals, PyObject* pairs) {
    Span span{static_cast<uint32_t>(signals.size()), 0};
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(pairs); ++place) {
        PyObject* pair = PyTuple_GET_ITEM(pairs, place);
        const auto signal = static_cast<uint32_t>(integer(PyTuple_GET_ITEM(pair, 0)));
        signals.push_back({signal, integer(PyTuple_GET_ITEM(pair, 1))});
    }
    span.last = static_cast<uint32_t>(signals.size());
    return span;
}

void extend(std::vector<int64_t>& after, const nb::list& tasks) {
    for (nb::handle task : tasks) after.push_back(integer(task.ptr()));
}

}  // namespace

// --- space

void IssueSpace::take(int64_t num_bytes, std::vector<int64_t>& after) {
    free_ -= num_bytes;
    int64_t missing = num_bytes - fresh_;
    if (missing <= 0) {
        fresh_ -= num_bytes;
        return;
    }
    fresh_ = 0;
    while (missing > 0) {
        Released& oldest = released_.front();
        after.insert(after.end(), oldest.uses.begin(), oldest.uses.end());
        if (oldest.num_bytes > missing) {
            oldest.num_bytes -= missing;
            return;
        }
        missing -= oldest.num_bytes;
        released_.pop_front();
    }
}

void IssueSpace::give(int64_t num_bytes, const std::vector<int64_t>& uses, bool in_composite) {
    free_ += num_bytes;
    const auto size = static_cast<int64_t>(uses.size());
    const auto count = in_composite ? size : std::min(window_, size);
    released_.push_back({num_bytes, {uses.end() - count, uses.end()}});
}

void IssueSpace::reset() {
    fresh_ = free_ = capacity_;
    released_.clear();
}

// --- commands

Issuer::Issuer(const Core& core, const std::vector<int64_t>& numbers)
    : core_(core),
      issue_route_(numbers[0]),
      issue_ps_(numbers[1]),
      dispatch_ps_(numbers[2]),
      window_(numbers[3]),
      read_route_(numbers[4]),
      read_rate_(numbers[5]),
      write_route_(numbers[6]),
      write_rate_(numbers[7]),
      near_(numbers[8], numbers[3]),
      far_(numbers[9], numbers[3]),
      graph_(std::make_shared<Graph>()) {}

int64_t Issuer::add_plan(const std::vector<int64_t>& plan) {
    plans_.push_back({{{plan[0], plan[1]}, {plan[2], plan[3]}}, plan[4]});
    return static_cast<int64_t>(plans_.size()) - 1;
}

int64_t Issuer::compute(int64_t number, const nb::list& operands) {
    const Plan plan = plans_[number];
    const int64_t issued = issue();
    after_.assign(1, issued);
    for (nb::handle operand : operands) {
        Value& value = values_[integer(operand.ptr())];
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
    for (nb::handle operand : operands) note_use(integer(operand.ptr()), done);
    return add_value(plan.num_bytes, near_bytes, spilled, task);
}

int64_t Issuer::load(int64_t num_bytes, const nb::list& accesses, const nb::list& after,
                     int64_t served) {
    after_.assign(1, issue());
    if (num_bytes > far_.free_bytes()) return kNoRoom;
    far_.take(num_bytes, after_);
    extend(after_, after);
    return add_value(num_bytes, 0, num_bytes, access(accesses, served));
}

int64_t Issuer::store(int64_t number, int64_t num_bytes, const nb::list& accesses,
                      const nb::list& after, int64_t served) {
    after_.assign(1, issue());
    bool is_staged = true;
    if (number != kNoValue) {
        const Value& source = values_[number];
        after_.push_back(source.task);
        is_staged = source.far_bytes < source.num_bytes;
    }
    if (is_staged) {
        if (num_bytes > far_.free_bytes()) return kNoRoom;
        far_.take(num_bytes, after_);
        after_.assign(1, hold(write_route_, port_ps(num_bytes, write_rate_), dispatch_ps_, after_));
    }
    extend(after_, after);
    const int64_t task = access(accesses, served);
    if (number != kNoValue) note_use(number, task);
    if (is_staged) far_.give(num_bytes, {task});
    return task;
}

int64_t Issuer::update(int64_t plan_number, int64_t number, const nb::list& operands) {
    const Plan plan = plans_[plan_number];
    const int64_t issued = issue();
    std::vector<int64_t> after{issued};
    for (nb::handle operand : operands) {
        PyObject* pair = operand.ptr();
        const Value& value = values_[integer(PyTuple_GET_ITEM(pair, 0))];
        after.push_back(stream(value, integer(PyTuple_GET_ITEM(pair, 1)), issued));
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
    for (nb::handle operand : operands) {
        note_use(integer(PyTuple_GET_ITEM(operand.ptr(), 0)), task);
    }
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

int64_t Issuer::send(int64_t number, int64_t num_bytes, const nb::list& steps) {
    after_.assign(1, issue());
    bool is_staged = true;
    if (number != kNoValue) {
        const Value& source = values_[number];
        after_.push_back(source.task);
        is_staged = source.far_bytes < source.num_bytes;
    }
    if (is_staged) {
        if (num_bytes > far_.free_bytes()) return kNoRoom;
        far_.take(num_bytes, after_);
        after_.assign(1, hold(write_route_, port_ps(num_bytes, write_rate_), dispatch_ps_, after_));
    }
    const int64_t task = take_steps(steps);
    complete(task);
    if (number != kNoValue) note_use(number, task);
    if (is_staged) far_.give(num_bytes, {task});
    return task;
}

int64_t Issuer::receive(int64_t num_bytes, const nb::list& steps) {
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
    if (!under_way_.empty()) last_issue_ = join({under_way_.begin(), under_way_.end()});
    under_way_.clear();
    values_.clear();
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
    return hold(plan.steps[1].route, plan.steps[1].hold_ps, dispatch_ps_, {first});
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
    return hold(read_route_, port_ps(read_bytes, read_rate_), dispatch_ps_, {issued, value.task});
}

// Exchanges after the tasks of after_; the task that ends with the last of them.
int64_t Issuer::access(const nb::list& accesses, int64_t served) {
    std::vector<int64_t> tasks;
    for (nb::handle entry : accesses) {
        PyObject* row = entry.ptr();
        int64_t fields[6];
        for (Py_ssize_t place = 0; place < 6; ++place) {
            fields[place] = integer(PyTuple_GET_ITEM(row, place));
        }
        const auto [trip, num_segments, segment_bytes, stride_bytes, address, walk_ps] = fields;
        Definition task{};
        task.kind = Kind::kExchange;
        task.amount = num_segments * segment_bytes;
        task.delay_ps = dispatch_ps_ + walk_ps;
        task.effect = kNoEffect;
        task.served_effect = served;
        task.tag = address;
        task.cut = kNone;
        if (num_segments > 1) {
            task.cut = static_cast<uint32_t>(graph_->cuts.size());
            graph_->cuts.push_back(core_.cut_of(segment_bytes, stride_bytes));
        }
        tasks.push_back(append(task, trip, after_));
    }
    const int64_t last = tasks.size() == 1 ? tasks[0] : join(tasks);
    complete(last);
    return last;
}

// Steps of a message, the first of them after the tasks of after_; the task that ends with those
// that the command ends with.
int64_t Issuer::take_steps(const nb::list& steps) {
    std::vector<int64_t> tasks, ends;
    for (nb::handle entry : steps) {
        PyObject* row = entry.ptr();
        const int64_t before = integer(PyTuple_GET_ITEM(row, 4));
        Definition task{};
        task.kind = static_cast<Kind>(integer(PyTuple_GET_ITEM(row, 0)));
        task.amount = integer(PyTuple_GET_ITEM(row, 2));
        task.tag = integer(PyTuple_GET_ITEM(row, 3));
        task.delay_ps = before == kFromStart ? dispatch_ps_ : 0;
        task.effect = kNoEffect;
        task.served_effect = integer(PyTuple_GET_ITEM(row, 7));
        task.cut = kNone;
        const std::vector<int64_t> after =
            before == kFromStart ? after_ : std::vector<int64_t>{tasks[before]};
        tasks.push_back(append_signalled(task, integer(PyTuple_GET_ITEM(row, 1)), after,
                                         PyTuple_GET_ITEM(row, 5), PyTuple_GET_ITEM(row, 6)));
        if (PyObject_IsTrue(PyTuple_GET_ITEM(row, 8))) ends.push_back(tasks.back());
    }
    return ends.size() == 1 ? ends[0] : join(ends);
}

int64_t Issuer::add_value(int64_t num_bytes, int64_t near_bytes, int64_t far_bytes, int64_t task) {
    int64_t number;
    if (free_values_.empty()) {
        number = static_cast<int64_t>(values_.size());
        values_.emplace_back();
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
    touch(number, 0);
    return number;
}

// --- tasks

int64_t Issuer::hold(int64_t route, int64_t hold_ps, int64_t delay_ps,
                     const std::vector<int64_t>& after) {
    Definition task{};
    task.kind = Kind::kHold;
    task.amount = hold_ps;
    task.delay_ps = delay_ps;
    task.effect = task.served_effect = kNoEffect;
    task.cut = kNone;
    return append(task, route, after);
}

int64_t Issuer::join(const std::vector<int64_t>& after) {
    Definition task{};
    task.kind = Kind::kTimer;
    task.effect = task.served_effect = kNoEffect;
    task.cut = kNone;
    return append(task, 0, after);
}

int64_t Issuer::append(Definition task, int64_t target, const std::vector<int64_t>& after) {
    PyObject* none = nothing_.ptr();
    return append_signalled(task, target, after, none, none);
}

int64_t Issuer::append_signalled(Definition task, int64_t target,
                                 const std::vector<int64_t>& after, PyObject* waits,
                                 PyObject* raises) {
    for (const int64_t earlier_task : after) {
        if (earlier_task < base_) earlier(earlier_task);  // before the edges of this one
    }
    Graph& graph = *graph_;
    task.afters.first = static_cast<uint32_t>(graph.afters.size());
    for (const int64_t each : after) {
        graph.afters.push_back(static_cast<uint32_t>(each < base_ ? earlier(each) : each - base_));
    }
    task.afters.last = static_cast<uint32_t>(graph.afters.size());
    task.waits = read_signals(graph.signals, waits);
    task.raises = read_signals(graph.signals, raises);
    core_.append_task(graph, task, target);
    return base_ + static_cast<int64_t>(graph.definitions.size()) - 1;
}

// Of a task of an earlier piece: the index of one of this piece that ends with it.
int64_t Issuer::earlier(int64_t task) {
    const auto known = std::find_if(earlier_.begin(), earlier_.end(),
                                    [task](const auto& pair) { return pair.first == task; });
    if (known != earlier_.end()) return known->second;
    Definition stand_in{};
    stand_in.kind = Kind::kEarlier;
    stand_in.amount = task_id(task);
    stand_in.effect = stand_in.served_effect = kNoEffect;
    stand_in.cut = kNone;
    const auto edge = static_cast<uint32_t>(graph_->afters.size());
    stand_in.afters = {edge, edge};
    core_.append_task(*graph_, stand_in, 0);
    const auto index = static_cast<int64_t>(graph_->definitions.size()) - 1;
    earlier_.emplace_back(task, index);
    return index;
}

// --- pieces

GraphPtr Issuer::take_piece() {
    if (graph_->definitions.empty()) return nullptr;
    GraphPtr piece = std::move(graph_);
    piece->link_dependents();
    graph_ = std::make_shared<Graph>();
    Piece handed{base_, 0, {}};
    handed.offsets.reserve(piece->definitions.size());
    for (const Definition& task : piece->definitions) handed.offsets.push_back(task.offset);
    base_ += static_cast<int64_t>(piece->definitions.size());
    pieces_.push_back(std::move(handed));
    earlier_.clear();
    return piece;
}

void Issuer::note_first_id(int64_t first_id) { pieces_.back().first_id = first_id; }

int64_t Issuer::task_id(int64_t task) const {
    const auto above = std::upper_bound(
        pieces_.begin(), pieces_.end(), task,
        [](int64_t wanted, const Piece& piece) { return wanted < piece.first_task; });
    const Piece& piece = *(above - 1);
    return piece.first_id + piece.offsets[task - piece.first_task];
}

}  // namespace tilewright
