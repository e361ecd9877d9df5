# Tests, tools and benchmarks, found by folder:
#
#   tests/<rung>/*.cc     one GoogleTest program per folder, test_<rung>, with access to internals
#   tests/abi/*_test.cc   one GoogleTest program, test_abi, that links libdtg.so and sees only the public headers
#   tests/abi/*.c         one C11 program each, abi_<name>, the same
#   tests/abi/guest/      hosts that are built by tests/bindings/guest_test.py
#   tests/cluster/        a program like those, in parts that run beside each other, test_cluster_1 and so on: most of its cases wait; tests/abi
#                         is cut likewise
#   tests/oracle/         tools: <tool>_main.cc plus the folder's other files; run against vectors by the oracle tests
#   tests/bench/*.cc      one benchmark program each, bench_<name>; built by `make bench` only
#   tests/bench/compare/  our side of the comparison with other frameworks, on the public headers; compare.py drives it
#   tests/random/*.cc     one program, random_graphs: graphs from seeds, run in every mode, judged by an interpreter
#   tests/sim/*.cc        one program, sim_cluster: whole clusters in one thread, from seeds
#   tests/faults/         a process that saves checkpoints, and the test that kills it and makes its system calls fail
#   tests/tidy/*.py       one test each, run with the build's paths
#   tests/bindings/*_test.py  one test each, on an installed copy of the build
#
# A GoogleTest program is one ctest test: its cases are counted from the JSON file it leaves in <build>/results.
find_package(GTest REQUIRED)
set(DTG_RESULTS "${PROJECT_BINARY_DIR}/results")
file(MAKE_DIRECTORY "${DTG_RESULTS}")

set(dtg_test_environment
  "DTG_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
  "DTG_BUILD_DIR=${PROJECT_BINARY_DIR}"
  "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

function(dtg_add_test name target labels)
  add_test(NAME ${name} COMMAND ${target} ${ARGN})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${dtg_test_environment}" TIMEOUT 600 LABELS "${labels}")
endfunction()

# A GoogleTest program from a list of sources, as one test or as several parts.
function(dtg_add_gtest name folder parts)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE dtg_flags GTest::gtest GTest::gtest_main ZLIB::ZLIB)
  # A test's own code runs once: optimising it took three times as long as compiling it so.
  target_compile_options(${name} PRIVATE -O0)
  if(parts EQUAL 1)
    dtg_add_test(${name} ${name} "${folder}" --gtest_brief=1 "--gtest_output=json:${DTG_RESULTS}/${name}.json")
    return()
  endif()
  foreach(part RANGE 1 ${parts})
    dtg_add_test(${name}_${part} ${name} "${folder}" --gtest_brief=1 "--gtest_output=json:${DTG_RESULTS}/${name}_${part}.json")
    math(EXPR index "${part} - 1")
    set_property(TEST ${name}_${part} APPEND PROPERTY ENVIRONMENT "GTEST_TOTAL_SHARDS=${parts}" "GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# ---- one program per rung --------------------------------------------------------------------------------------------------
file(GLOB dtg_test_folders CONFIGURE_DEPENDS LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/tests/*")
foreach(folder IN LISTS dtg_test_folders)
  cmake_path(GET folder FILENAME rung)
  if(NOT IS_DIRECTORY "${folder}" OR rung MATCHES "^(abi|oracle|bench|tidy|bindings|random|sim|faults)$")
    continue()
  endif()
  # The thread sanitizer is for what has threads.
  if(DTG_SANITIZE STREQUAL "thread" AND rung MATCHES "^(grads|graph|nn|plan|wire)$")
    continue()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc")
  if(NOT sources)
    continue()
  endif()
  # It measures time between two looks, which is another under a sanitizer.
  if(DTG_SANITIZE)
    list(FILTER sources EXCLUDE REGEX "/ops/looks_test")
  endif()
  dtg_unite(sources test_${rung})
  set(parts 1)
  if(rung STREQUAL "cluster")
    set(parts 3)
  endif()
  dtg_add_gtest(test_${rung} ${rung} ${parts} ${sources})
  target_link_libraries(test_${rung} PRIVATE dtg_internal)
  target_include_directories(test_${rung} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  if(rung STREQUAL "warm" AND NOT DTG_SANITIZE)
    # It counts what reaches the private allocator.
    target_link_options(test_${rung} PRIVATE LINKER:--wrap=mi_malloc_aligned)
  endif()
  if(rung STREQUAL "wire")
    target_include_directories(test_${rung} SYSTEM PRIVATE "${DTG_GENERATED_DIR}")
  endif()
endforeach()

# ---- the ABI from outside --------------------------------------------------------------------------------------------------
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/abi/*_test.cc")
if(sources)
  dtg_unite(sources test_abi)
  dtg_add_gtest(test_abi abi 3 ${sources})
  target_link_libraries(test_abi PRIVATE dtg ${CMAKE_DL_LIBS} Threads::Threads)
endif()
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/abi/*.c")
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  dtg_add_c_program(abi_${name} "${source}")
  dtg_add_test(abi_${name} abi_${name} abi)
endforeach()

# ---- random graphs ---------------------------------------------------------------------------------------------------------
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/random/*.cc")
if(sources)
  dtg_unite(sources random)
  add_executable(random_graphs ${sources})
  target_link_libraries(random_graphs PRIVATE dtg_internal dtg_flags Threads::Threads)
  target_include_directories(random_graphs PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  set(dtg_random_count 3000 --cover)
  if(DTG_SANITIZE)
    set(dtg_random_count 500)
  endif()
  dtg_add_test(random_graphs random_graphs random --count ${dtg_random_count} --jobs 2 --corpus "${PROJECT_SOURCE_DIR}/tests/random/corpus")
  set_tests_properties(random_graphs PROPERTIES PROCESSORS 2)
  # Each with a condition and a loop at least.
  set(dtg_functions_count 1000)
  if(DTG_SANITIZE)
    set(dtg_functions_count 300)
  endif()
  dtg_add_test(random_functions random_graphs random --functions --count ${dtg_functions_count} --jobs 2)
  set_tests_properties(random_functions PROPERTIES PROCESSORS 2)
  # A device that breaks the rules must be found out.
  if(NOT DTG_SANITIZE)
    dtg_add_test(emu_mutants Python3::Interpreter random "${PROJECT_SOURCE_DIR}/tests/checks/emu_mutants_test.py" "$<TARGET_FILE:random_graphs>")
  endif()
endif()

# ---- simulated clusters ----------------------------------------------------------------------------------------------------
# In one thread there is nothing for the thread sanitizer to find.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/sim/*.cc")
if(sources AND NOT DTG_SANITIZE STREQUAL "thread")
  dtg_unite(sources sim)
  add_executable(sim_cluster ${sources} "${PROJECT_SOURCE_DIR}/tests/checkpoint/model_disk.cc")
  target_link_libraries(sim_cluster PRIVATE dtg_internal dtg_flags Threads::Threads)
  target_include_directories(sim_cluster PRIVATE "${PROJECT_SOURCE_DIR}/tests/sim" "${PROJECT_SOURCE_DIR}/tests")
  # Under a sanitizer a seed takes ten times as long, and one that has begun is brought to its end.
  set(dtg_sim_seconds 110 60)
  if(DTG_SANITIZE)
    set(dtg_sim_seconds 40 15)
  endif()
  list(GET dtg_sim_seconds 0 dtg_sim_long)
  list(GET dtg_sim_seconds 1 dtg_sim_short)
  dtg_add_test(sim_cluster sim_cluster sim --seconds ${dtg_sim_long} --count 1000 --jobs 2)
  set_tests_properties(sim_cluster PROPERTIES PROCESSORS 2)
  # Groups and their collectives. A seed takes a second.
  dtg_add_test(sim_groups sim_cluster sim --groups --seconds ${dtg_sim_short} --count 12 --jobs 2)
  set_tests_properties(sim_groups PROPERTIES PROCESSORS 2)
  # A coordinator, whose workers are killed. In seeds 3, 11 and 13 a server went on sending to the life before.
  dtg_add_test(sim_closures sim_cluster sim --closures --seconds ${dtg_sim_short} --count 40 --jobs 2)
  set_tests_properties(sim_closures PROPERTIES PROCESSORS 2)
  # Elastic workers.
  dtg_add_test(sim_elastic sim_cluster sim --elastic --seconds 20 --count 60 --jobs 2)
  set_tests_properties(sim_elastic PROPERTIES PROCESSORS 2)
  # Workers of bounded staleness.
  dtg_add_test(sim_bounded sim_cluster sim --bounded --seconds ${dtg_sim_short} --count 100 --jobs 2)
  set_tests_properties(sim_bounded PROPERTIES PROCESSORS 2)
endif()

# ---- faults of the disk ----------------------------------------------------------------------------------------------------
# `make faults` runs all of it; what changes the disk and a few kills are one test. A tracer and a sanitizer would trip over each other.
if(NOT DTG_SANITIZE)
  add_executable(checkpoint_saver "${PROJECT_SOURCE_DIR}/tests/faults/saver.cc")
  target_link_libraries(checkpoint_saver PRIVATE dtg_internal dtg_flags Threads::Threads)
  target_include_directories(checkpoint_saver PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  dtg_add_test(faults Python3::Interpreter faults "${PROJECT_SOURCE_DIR}/tests/faults/faults_test.py" "$<TARGET_FILE:checkpoint_saver>"
    --calls few --kills 30)
  set_tests_properties(faults PROPERTIES SKIP_RETURN_CODE 77)
  if(TARGET example_fashion_mnist AND TARGET dtg_cli)
    dtg_add_test(faults_training Python3::Interpreter faults "${PROJECT_SOURCE_DIR}/tests/faults/training_test.py"
      "$<TARGET_FILE:example_fashion_mnist>" "$<TARGET_FILE:dtg_cli>" --kills 20)
  endif()
endif()

# ---- oracle tools ----------------------------------------------------------------------------------------------------------
file(GLOB mains CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/oracle/*_main.cc")
file(GLOB shared CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/oracle/*.cc")
list(REMOVE_ITEM shared "" ${mains})
# Under the thread sanitizer their arithmetic would only be slow.
if(DTG_SANITIZE STREQUAL "thread")
  set(mains)
  set(shared)
endif()
if(shared)
  dtg_unite(shared oracle)
  add_library(dtg_oracle STATIC ${shared})
  target_link_libraries(dtg_oracle PUBLIC dtg dtg_flags dtg_json ZLIB::ZLIB Threads::Threads)
endif()
foreach(source IN LISTS mains)
  cmake_path(GET source STEM name)
  string(REGEX REPLACE "_main$" "" name "${name}")
  add_executable(${name} "${source}")
  target_link_libraries(${name} PRIVATE dtg_oracle)
  dtg_add_test(${name} ${name} oracle)
  # The same answers on the emulated accelerator.
  if(name MATCHES "^oracle_(ops|graphs|train)$")
    dtg_add_test(${name}_emu ${name} oracle --device EMU:0)
  endif()
endforeach()

# ---- examples --------------------------------------------------------------------------------------------------------------
foreach(target IN LISTS DTG_EXAMPLE_TARGETS)
  if(target MATCHES "^example_(sync_worker|elastic|fit_workers)$")
    continue()  # a part of a job: tests of their own run them
  elseif(target MATCHES "^example_(digits|first_hour|fit|recipes|resume)$")
    dtg_add_test(${target} ${target} example "${PROJECT_SOURCE_DIR}/tests/data/digits.csv.gz")
  else()
    # With --smoke an example runs its shortest honest path; see capi/examples.
    dtg_add_test(${target} ${target} example --smoke)
  endif()
endforeach()

# What they say where their data is not, and that they leave nothing behind then.
if(TARGET example_fashion_mnist)
  dtg_add_test(examples_without_data Python3::Interpreter example "${PROJECT_SOURCE_DIR}/tests/checks/examples_test.py"
    "$<TARGET_FILE:example_digits>" "$<TARGET_FILE:example_fit>" "$<TARGET_FILE:example_resume>" "$<TARGET_FILE:example_fashion_mnist>")
endif()

# The first steps of the models, held to TensorFlow's losses.
if(TARGET example_models AND NOT DTG_SANITIZE)
  dtg_add_test(models Python3::Interpreter example "${PROJECT_SOURCE_DIR}/tests/models/models_test.py" "$<TARGET_FILE:example_models>")
  dtg_add_test(models_emu Python3::Interpreter example "${PROJECT_SOURCE_DIR}/tests/models/models_test.py" "$<TARGET_FILE:example_models>"
    --device /device:EMU:0)
  # What the transformer writes then, held to NumPy's.
  dtg_add_test(models_decode Python3::Interpreter example "${PROJECT_SOURCE_DIR}/tests/models/decode_test.py" "$<TARGET_FILE:example_models>")
  set_tests_properties(models_decode PROPERTIES SKIP_RETURN_CODE 77)
endif()

# What the demo leaves behind, judged by real readers.
if(TARGET example_fashion_mnist AND TARGET dtg_cli AND NOT DTG_SANITIZE)
  dtg_add_test(demo_digits Python3::Interpreter example "${PROJECT_SOURCE_DIR}/tests/checks/demo_test.py" "$<TARGET_FILE:example_fashion_mnist>"
    "$<TARGET_FILE:dtg_cli>")
  set_tests_properties(demo_digits PROPERTIES SKIP_RETURN_CODE 77)
  dtg_add_test(demo_kills Python3::Interpreter example "${PROJECT_SOURCE_DIR}/tests/checks/demo_kill_test.py"
    "$<TARGET_FILE:example_fashion_mnist>" "$<TARGET_FILE:dtg_cli>" "${PROJECT_SOURCE_DIR}/.ci/killer")
  dtg_add_test(demo_elastic Python3::Interpreter example "${PROJECT_SOURCE_DIR}/tests/checks/elastic_test.py" "$<TARGET_FILE:dtg_cli>"
    "$<TARGET_FILE:example_fashion_mnist>")
endif()

# Members of a group that die or stand still, as processes.
if(TARGET example_group AND NOT DTG_SANITIZE)
  dtg_add_test(group_kills Python3::Interpreter example "${PROJECT_SOURCE_DIR}/tests/checks/group_kill_test.py" "$<TARGET_FILE:example_group>")
endif()

# Workers that fit together and are killed, as processes.
if(TARGET example_fit_workers AND TARGET dtg_cli AND NOT DTG_SANITIZE)
  dtg_add_test(fit_kills Python3::Interpreter example "${PROJECT_SOURCE_DIR}/tests/checks/fit_kill_test.py" "$<TARGET_FILE:example_fit_workers>"
    "$<TARGET_FILE:dtg_cli>" "${PROJECT_SOURCE_DIR}/.ci/killer")
endif()

# Between-graph replication as a user would start it.
if(TARGET example_between_graph AND TARGET dtg_cli AND NOT DTG_SANITIZE)
  add_test(NAME between_graph COMMAND dtg_cli run --local --ps 2 --workers 2 -- $<TARGET_FILE:example_between_graph>)
  set_tests_properties(between_graph PROPERTIES TIMEOUT 60 LABELS example PASS_REGULAR_EXPRESSION "worker/0 . y = 3.000 x . 2.000"
    FAIL_REGULAR_EXPRESSION "exit code|signal")
endif()

# ---- the bindings ----------------------------------------------------------------------------------------------------------
# tests/bindings/<name>_test.py PREFIX BUILD SOURCE: against an installation of this build, as a user would have it. A language whose
# tools are missing is named as skipped.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/bindings/*_test.py")
if(sources AND TARGET dtg_cli AND NOT DTG_SANITIZE)
  set(dtg_prefix "${PROJECT_BINARY_DIR}/prefix")
  add_test(NAME install COMMAND "${CMAKE_COMMAND}" --install "${PROJECT_BINARY_DIR}" --prefix "${dtg_prefix}")
  set_tests_properties(install PROPERTIES FIXTURES_SETUP installed LABELS bindings)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    string(REGEX REPLACE "_test$" "" name "${name}")
    dtg_add_test(bindings_${name} Python3::Interpreter bindings "${source}" "${dtg_prefix}" "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
    set_tests_properties(bindings_${name} PROPERTIES FIXTURES_REQUIRED installed SKIP_RETURN_CODE 77 TIMEOUT 1200
      ENVIRONMENT "${dtg_test_environment};DTG_RESULTS=${DTG_RESULTS}")
  endforeach()
endif()

# ---- the command -----------------------------------------------------------------------------------------------------------
# A launcher that is killed cannot say what it leaked, so this runs on ordinary builds only.
if(TARGET dtg_cli AND NOT DTG_SANITIZE)
  dtg_add_test(cli Python3::Interpreter cli "${PROJECT_SOURCE_DIR}/tests/checks/cli_test.py" "$<TARGET_FILE:dtg_cli>")
  dtg_add_test(cli_range Python3::Interpreter cli "${PROJECT_SOURCE_DIR}/tests/checks/range_test.py" "$<TARGET_FILE:dtg_cli>")
  dtg_add_test(cli_restarts Python3::Interpreter cli "${PROJECT_SOURCE_DIR}/tests/checks/restarts_test.py" "$<TARGET_FILE:dtg_cli>")
endif()

# ---- benchmarks ------------------------------------------------------------------------------------------------------------
add_custom_target(bench)
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/bench/*.cc")
if(sources AND NOT DTG_SANITIZE)
  find_package(benchmark REQUIRED)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    string(REGEX REPLACE "_bench$" "" name "${name}")
    add_executable(bench_${name} EXCLUDE_FROM_ALL "${source}")
    target_link_libraries(bench_${name} PRIVATE dtg_internal dtg_flags benchmark::benchmark benchmark::benchmark_main)
    add_dependencies(bench bench_${name})
  endforeach()
endif()

# Ours against the peers: the program itself, a twin that counts allocations and locks, and the check of the second CPU.
set(dtg_compare "${PROJECT_SOURCE_DIR}/tests/bench/compare")
if(NOT DTG_SANITIZE)
  dtg_add_c_program(bench_ours "${dtg_compare}/ours.c")
  dtg_add_c_program(bench_ours_cluster "${dtg_compare}/ours_cluster.c" "${dtg_compare}/turns.c")
  dtg_add_c_program(bench_ours_group "${dtg_compare}/ours_group.c" "${dtg_compare}/ranks.c")
  dtg_add_c_program(bench_planning "${dtg_compare}/planning.c")
  dtg_add_c_program(bench_control "${dtg_compare}/control.c")
  dtg_add_c_program(bench_checkpoint "${dtg_compare}/checkpoint.c")
  dtg_add_c_program(bench_durability "${dtg_compare}/durability.c")
  dtg_add_c_program(bench_spin "${dtg_compare}/spin.c")
  dtg_add_c_program(bench_crossing "${dtg_compare}/crossing.c")
  add_executable(bench_ours_counted EXCLUDE_FROM_ALL "${dtg_compare}/ours.c" "${dtg_compare}/count.c")
  set_target_properties(bench_ours_counted PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(bench_ours_counted PRIVATE dtg_internal dtg_flags)
  target_link_options(bench_ours_counted PRIVATE
    LINKER:--wrap=mi_malloc_aligned LINKER:--wrap=mi_free LINKER:--wrap=pthread_mutex_lock)
  set_target_properties(bench_ours bench_ours_cluster bench_ours_group bench_planning bench_control bench_checkpoint bench_durability bench_spin bench_crossing PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(bench bench_ours bench_ours_cluster bench_ours_group bench_planning bench_control bench_checkpoint bench_durability bench_spin bench_crossing bench_ours_counted)
  if(TARGET example_fashion_mnist AND TARGET dtg_cli)
    add_dependencies(bench example_fashion_mnist dtg_cli dtg_archive) # the bindings' rows install what there is
  endif()
endif()

# ---- tidy ------------------------------------------------------------------------------------------------------------------
# What they find in a sanitizer's build would be the sanitizer, so they run on ordinary builds only.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/tidy/*_test.py")
if(NOT DTG_SANITIZE)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    string(REGEX REPLACE "_test$" "" name "${name}")
    dtg_add_test(tidy_${name} Python3::Interpreter tidy "${source}" --source "${PROJECT_SOURCE_DIR}" --build "${PROJECT_BINARY_DIR}"
      --cc "${CMAKE_C_COMPILER}" --cxx "${CMAKE_CXX_COMPILER}")
    set_tests_properties(tidy_${name} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endif()

# Long ones first, where nothing is known yet of how long they took: one that begins last is waited for alone.
foreach(name bindings_go bindings_rust bindings_outside bindings_java sim_cluster test_cluster_1 test_cluster_2 test_cluster_3 test_abi_1 test_abi_2 test_abi_3
        test_ops)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST 100)
  endif()
endforeach()
