// EXPECT_SHARD_ERROR(statement, code, piece): it throws shard::Error with the code, and the message holds the
// piece.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "shard/error.hpp"

#define EXPECT_SHARD_ERROR(statement, expected_code, piece)                                              \
  do {                                                                                                   \
    try {                                                                                                \
      statement;                                                                                         \
      ADD_FAILURE() << #statement << " threw nothing; expected: " << (piece);                            \
    } catch (const ::shard::Error& caught_error) {                                                       \
      EXPECT_EQ(::shard::to_string(caught_error.code()), ::shard::to_string(expected_code))              \
          << caught_error.what();                                                                        \
      EXPECT_NE(std::string(caught_error.what()).find(piece), std::string::npos) << caught_error.what(); \
    }                                                                                                    \
  } while (false)
