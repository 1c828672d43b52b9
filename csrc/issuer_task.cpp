// Tasks that an issuer makes of commands, and the pieces in which they are handed over.
#include "issuer.hpp"

#include <algorithm>

namespace tilewright {

namespace {

Span append_signals(std::vector<SignalAmount>& signals, std::span<const SignalAmount> more) {
    const auto first = static_cast<uint32_t>(signals.size());
    signals.insert(signals.end(), more.begin(), more.end());
    return {first, static_cast<uint32_t>(signals.size())};
}

}  // namespace

// Steps of a message, the first of them after the tasks of after_; the task that ends with those
// that the command ends with.
int64_t Issuer::take_steps(std::span<const MessageStep> steps) {
    std::vector<int64_t> tasks, ends;
    for (const MessageStep& step : steps) {
        const bool is_first = step.before == kFromStart;
        Definition task{.kind = step.kind};
        task.amount = step.amount;
        task.tag = step.tag;
        task.delay_ps = is_first ? dispatch_ps_ : 0;
        task.served_effect = step.served_effect;
        task.extra = graph_->add_extra({
            .waits = append_signals(graph_->signals, step.waits),
            .raises = append_signals(graph_->signals, step.raises),
        });
        const std::vector<int64_t> after =
            is_first ? after_ : std::vector<int64_t>{tasks[step.before]};
        tasks.push_back(append(task, step.target, after));
        if (step.ends) ends.push_back(tasks.back());
    }
    return ends.size() == 1 ? ends[0] : join(ends);
}

int64_t Issuer::hold(int64_t route, int64_t hold_ps, int64_t delay_ps,
                     std::span<const int64_t> after) {
    return append({.kind = Kind::kHold, .amount = hold_ps, .delay_ps = delay_ps}, route, after);
}

int64_t Issuer::since_issue(int64_t delay_ps) {
    const int64_t issued = in_composite_ ? composite_issue_ : last_issue_;
    return append({.kind = Kind::kTimer, .delay_ps = delay_ps}, 0, {&issued, 1});
}

int64_t Issuer::join(std::span<const int64_t> after) {
    return append({.kind = Kind::kTimer}, 0, after);
}

int64_t Issuer::append(const Definition& task, int64_t target, std::span<const int64_t> after) {
    for (const int64_t earlier_task : after) {
        if (earlier_task < base_) earlier(earlier_task);  // before the edges of this one
    }
    Graph& graph = *graph_;
    for (const int64_t each : after) {
        graph.afters.push_back(static_cast<uint32_t>(each < base_ ? earlier(each) : each - base_));
    }
    core_.append_task(graph, task, target);
    return base_ + static_cast<int64_t>(graph.definitions.size()) - 1;
}

// Of a task of an earlier piece: the index of one of this piece that ends with it.
int64_t Issuer::earlier(int64_t task) {
    const auto known = std::find_if(earlier_.begin(), earlier_.end(),
                                    [task](const auto& pair) { return pair.first == task; });
    if (known != earlier_.end()) return known->second;
    core_.append_task(*graph_, {.kind = Kind::kEarlier, .amount = task_id(task)}, 0);
    const auto index = static_cast<int64_t>(graph_->definitions.size()) - 1;
    earlier_.emplace_back(task, index);
    return index;
}

// --- pieces

GraphPtr Issuer::take_piece() {
    if (graph_->definitions.empty()) return nullptr;
    forget_ended();
    GraphPtr piece = std::move(graph_);
    piece->link_dependents();
    graph_ = std::make_shared<Graph>();
    pieces_.push_back({base_, 0, piece});
    base_ += static_cast<int64_t>(piece->definitions.size());
    earlier_.clear();
    return piece;
}

// Nobody has to tell the tasks of such pieces apart, however long the program runs.
void Issuer::forget_ended() {
    while (!pieces_.empty() && pieces_.front().graph->has_ended) {
        ended_id_ = pieces_.front().first_id;
        pieces_.pop_front();
    }
    const int64_t first_task = pieces_.empty() ? base_ : pieces_.front().first_task;
    while (!walks_.empty() && walks_.front().task < first_task) walks_.pop_front();
    near_.forget_ended(first_task);
    far_.forget_ended(first_task);
}

void Issuer::note_first_id(int64_t first_id) { pieces_.back().first_id = first_id; }

int64_t Issuer::task_id(int64_t task) const {
    const auto above = std::upper_bound(
        pieces_.begin(), pieces_.end(), task,
        [](int64_t wanted, const Piece& piece) { return wanted < piece.first_task; });
    if (above == pieces_.begin()) return ended_id_;
    const Piece& piece = *(above - 1);
    return piece.first_id + piece.graph->offsets[task - piece.first_task];
}

}  // namespace tilewright
