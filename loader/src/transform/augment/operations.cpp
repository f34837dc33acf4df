// What is made of the declarations of operations: the list of them, by name, and as strong as one can see.
#include "shard/loader/operations.hpp"

#include <type_traits>
#include <utility>

namespace shard {

namespace {

template <std::size_t... kAt>
std::vector<Operation> each_with_defaults(std::index_sequence<kAt...>) {
  return {Operation(std::in_place_index<kAt>)...};
}

// g++ 12 with a sanitizer takes the optional for one that may be empty where it was asked.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
struct Show {
  template <class T>
  void operator()(std::string_view, T& member, const Limits& limits) const {
    if (limits.shown) show(member, *limits.shown);
  }

 private:
  static void show(Range& member, const Range& shown) { member = shown; }
  template <class T>
  static void show(std::optional<T>& member, const Range& shown) {
    show(member.emplace(), shown);
  }
  template <class T, std::size_t N>
  static void show(std::array<T, N>& member, const Range& shown) {
    member.fill(static_cast<T>(shown.low));
  }
  template <class T>
  static void show(T& member, const Range& shown) {
    member = static_cast<T>(shown.low);
  }
};

}  // namespace

const ops::Description& description_of(const Operation& operation) noexcept {
  return std::visit(
      [](const auto& one) -> const ops::Description& { return std::decay_t<decltype(one)>::kDescription; },
      operation);
}

std::string_view name_of(const Operation& operation) noexcept { return description_of(operation).name; }

const std::vector<Operation>& all_operations() {
  static const std::vector<Operation> all =
      each_with_defaults(std::make_index_sequence<std::variant_size_v<Operation>>{});
  return all;
}

std::optional<Operation> operation_named(std::string_view name) {
  for (const Operation& one : all_operations())
    if (name_of(one) == name) return one;
  return std::nullopt;
}

Operation shown(Operation operation) {
  Show show;
  std::visit([&](auto& one) { ops::visit_members(one, show); }, operation);
  return operation;
}
#pragma GCC diagnostic pop

}  // namespace shard
