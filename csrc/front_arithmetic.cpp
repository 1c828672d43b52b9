// Sums, differences, products and quotients of f32.
#include "front_arithmetic.hpp"

#include <algorithm>
#include <functional>

namespace nb = nanobind;

namespace tilewright {

namespace {

constexpr int kRank = 2;
// Of more elements, NumPy's loops for wider vectors make up for its way to them; that is longer if an
// operand has to be spread along an axis, since it is copied first.
constexpr int64_t kMaxElements = 1 << 11, kMaxSpreadElements = 1 << 14;

PyTypeObject* scalar_type() {
    static PyObject* const type =
        nb::object(type_view(block_type_of(language.float32, {})).storage.attr("type"))
            .release()
            .ptr();
    return reinterpret_cast<PyTypeObject*>(type);
}

// An array of at most two axes, in order, or a scalar of NumPy.
class Operand {
  public:
    explicit Operand(PyObject* value) {
        if (reinterpret_cast<PyObject*>(Py_TYPE(value)) == language.array) {
            read_array(value);
        } else if (Py_TYPE(value) == scalar_type()) {
            number_ = static_cast<float>(PyFloat_AsDouble(value));
            elements_ = &number_;
        }
    }
    Operand(const Operand&) = delete;
    ~Operand() {
        if (view_.obj != nullptr) PyBuffer_Release(&view_);
    }

    bool is_known() const { return elements_ != nullptr; }
    const Shape& shape() const { return shape_; }
    int64_t extent(int axis) const {  // of two
        const int place = axis - kRank + shape_.rank;
        return place < 0 ? 1 : shape_.extents[place];
    }
    bool varies() const { return extent(1) > 1; }  // along a row
    const float* row(int64_t place) const {
        return extent(0) > 1 ? elements_ + place * extent(1) : elements_;
    }

  private:
    void read_array(PyObject* array) {
        if (PyObject_GetBuffer(array, &view_, PyBUF_FORMAT | PyBUF_STRIDES) < 0) {
            PyErr_Clear();  // NumPy has dtypes that buffers have not
            return;
        }
        if (view_.format[0] != 'f' || view_.format[1] != '\0' || view_.ndim > kRank) return;
        int64_t step = sizeof(float);
        for (int axis = view_.ndim - 1; axis >= 0; --axis) {
            if (view_.shape[axis] > 1 && view_.strides[axis] != step) return;
            step *= view_.shape[axis];
            shape_.extents[axis] = view_.shape[axis];
        }
        shape_.rank = view_.ndim;
        elements_ = static_cast<const float*>(view_.buf);
    }

    Py_buffer view_{};
    Shape shape_;
    const float* elements_ = nullptr;
    float number_ = 0;
};

// One side of a row that is the same number everywhere.
struct Same {
    float number;
    float operator[](int64_t) const { return number; }
};

// Whether a NaN came out.
template <typename Combine, typename Left, typename Right>
bool combine_all(Left left, Right right, int64_t count, float* __restrict out) {
    const Combine combine;
    int32_t has_nan = 0;  // in all bits, as vectors have it
    for (int64_t place = 0; place < count; ++place) {
        const float result = combine(left[place], right[place]);
        out[place] = result;
        has_nan |= -static_cast<int32_t>(result != result);
    }
    return has_nan != 0;
}

template <typename Combine>
bool combine_row(const Operand& left, const Operand& right, int64_t row, int64_t count,
                 float* out) {
    const float *first = left.row(row), *second = right.row(row);
    if (!right.varies()) return combine_all<Combine>(first, Same{*second}, count, out);
    if (!left.varies()) return combine_all<Combine>(Same{*first}, second, count, out);
    return combine_all<Combine>(first, second, count, out);
}

bool is_worthwhile(const Operand& left, const Operand& right, int64_t num_elements) {
    const bool is_spread = left.shape().rank > 0 && right.shape().rank > 0 &&
                           !(left.shape() == right.shape());
    return num_elements <= (is_spread ? kMaxSpreadElements : kMaxElements);
}

template <typename Combine>
PyObject* combined(const Operand& left, const Operand& right, ArrayPool& pool) {
    Shape shape;
    if (!left.is_known() || !right.is_known()) return nullptr;
    if (!broadcast_shapes(left.shape(), right.shape(), shape)) return nullptr;
    if (shape.rank == 0) return nullptr;  // NumPy makes a scalar of it
    const int64_t rows = std::max(left.extent(0), right.extent(0));
    const int64_t columns = std::max(left.extent(1), right.extent(1));
    if (!is_worthwhile(left, right, rows * columns)) return nullptr;
    const ArrayPool::Taken taken = pool.take(type_view(block_type_of(language.float32, shape)));
    auto* out = reinterpret_cast<float*>(taken.bytes);
    for (int64_t row = 0; row < rows; ++row) {
        if (combine_row<Combine>(left, right, row, columns, out + row * columns)) return nullptr;
    }
    return counted(taken.array.ptr());
}

}  // namespace

PyObject* arithmetic(PyObject* function, std::span<PyObject* const> operands, ArrayPool& pool) {
    using Way = PyObject* (*)(const Operand&, const Operand&, ArrayPool&);
    Way way = nullptr;
    if (function == language.add) way = combined<std::plus<float>>;
    if (function == language.subtract) way = combined<std::minus<float>>;
    if (function == language.multiply) way = combined<std::multiplies<float>>;
    if (function == language.divide) way = combined<std::divides<float>>;
    if (way == nullptr) return nullptr;
    return way(Operand(operands[0]), Operand(operands[1]), pool);
}

}  // namespace tilewright
