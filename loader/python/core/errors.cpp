// shard::Error to the classes of shardloader._errors, by its code.
#include <exception>

#include "common.hpp"
#include "shard/error.hpp"

namespace shard::python {

const char* error_class(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "InvalidArgumentError";
    case ErrorCode::not_found:
      return "NotFoundError";
    case ErrorCode::io:
      return "IoError";
    case ErrorCode::corrupt:
      return "CorruptError";
    case ErrorCode::unsupported:
      return "UnsupportedError";
    case ErrorCode::resource:
      return "ResourceError";
    case ErrorCode::cancelled:
      return "CancelledError";
  }
  return "ShardError";
}

nb::str text(std::string_view bytes) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

void bind_errors() {
  nb::register_exception_translator([](const std::exception_ptr& exception, void*) {
    try {
      std::rethrow_exception(exception);
    } catch (const Error& error) {
      const nb::object type = nb::module_::import_("shardloader._errors").attr(error_class(error.code()));
      PyErr_SetObject(type.ptr(), text(error.what()).ptr());
    }
  });
}

}  // namespace shard::python
