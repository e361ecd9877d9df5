// The commands of dtg: each takes its own argv (argv[0] is its name) and gives the exit code. Main thread.
#pragma once

namespace dtg::cli {

int version(int argc, char** argv);
int ops(int argc, char** argv);
int graph(int argc, char** argv);
int checkpoint(int argc, char** argv);
int report(int argc, char** argv);
int run(int argc, char** argv);
int keygen(int argc, char** argv);
int server(int argc, char** argv);
int status(int argc, char** argv);
int worker(int argc, char** argv);

}  // namespace dtg::cli
