// The file system, its faults and its crashes. See model_disk.h.
#include "model_disk.h"

#include <algorithm>
#include <cstring>

namespace dtg {

class ModelWriter final : public FileWriter {
 public:
  ModelWriter(ModelDisk& disk, int node) : disk_(disk), node_(node) {}
  Status append(std::string_view bytes) override {
    bool half = false;
    const Status status = disk_.step(&half);
    if (!status.ok()) bytes = bytes.substr(0, half ? bytes.size() / 2 : 0);
    disk_.nodes_[static_cast<size_t>(node_)].seen += bytes;
    return status;
  }
  Status reserve(int64_t) override { return disk_.step(); }
  Status sync() override {
    ModelDisk::Node& node = disk_.nodes_[static_cast<size_t>(node_)];
    if (node.sync_failed) disk_.synced_again_ = true;
    const Status status = disk_.step();
    node.sync_failed = !status.ok();
    if (!status.ok()) return status;
    return disk_.sync_node(node_);
  }
  Status close() override { return disk_.step(); }

 private:
  ModelDisk& disk_;
  const int node_;
};

class ModelReader final : public FileReader {
 public:
  ModelReader(ModelDisk& disk, int node) : disk_(disk), node_(node) {}
  Result<size_t> read(void* into, size_t count) override {
    DTG_TRY(disk_.step());
    const std::string& bytes = disk_.nodes_[static_cast<size_t>(node_)].seen;
    const size_t given = std::min(count, bytes.size() - at_);
    if (given > 0) std::memcpy(into, bytes.data() + at_, given);
    at_ += given;
    return given;
  }

 private:
  ModelDisk& disk_;
  const int node_;
  size_t at_ = 0;
};

namespace {

Status missing(const std::string& path) { return not_found("\"%s\": no such file or directory", path.c_str()); }

}  // namespace

ModelDisk::ModelDisk() { add(true); }

void ModelDisk::fail(int call, Fault fault, bool for_good) {
  fail_at_ = call;
  fault_ = fault;
  for_good_ = for_good || fault == Fault::crash;
  crash_at_ = INT32_MAX;
  calls_ = 0;
  failed_ = false;
}

Status ModelDisk::step(bool* half) {
  const int call = calls_++;
  if (call >= crash_at_) return unavailable("the machine is off");
  if (fault_ == Fault::none || call < fail_at_ || (call > fail_at_ && !for_good_)) return {};
  failed_ = true;
  if (half) *half = fault_ == Fault::short_write;
  switch (fault_) {
    case Fault::io_error: return data_loss("input/output error");
    case Fault::crash: return unavailable("the machine is off");
    default: return resource_exhausted("no space left on device");
  }
}

int ModelDisk::find(const std::string& path) const {
  int at = 0;
  for (size_t begin = 1; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const Entries& entries = nodes_[static_cast<size_t>(at)].entries;
    const auto entry = entries.find(path.substr(begin, end - begin));
    if (entry == entries.end()) return -1;
    at = entry->second;
    begin = end + 1;
  }
  return at;
}

bool ModelDisk::locate(const std::string& path, int* parent, std::string* name) const {
  const size_t slash = path.rfind('/');
  *parent = find(path.substr(0, slash));
  *name = path.substr(slash + 1);
  return *parent >= 0 && nodes_[static_cast<size_t>(*parent)].directory;
}

int ModelDisk::add(bool directory) {
  nodes_.emplace_back().directory = directory;
  return static_cast<int>(nodes_.size()) - 1;
}

void ModelDisk::change(int parent, const std::string& gone, const std::string& made, int node) {
  Entries& entries = nodes_[static_cast<size_t>(parent)].entries;
  if (!gone.empty()) entries.erase(gone);
  if (!made.empty()) entries[made] = node;
  pending_.push_back({parent, gone, made, node});
}

Status ModelDisk::sync_node(int at) {
  if (syncs_++ == lie_at_) return {};
  Node& node = nodes_[static_cast<size_t>(at)];
  node.durable = node.seen;
  node.durable_entries = node.entries;
  std::erase_if(pending_, [at](const Effect& effect) { return effect.parent == at; });
  return {};
}

Result<std::unique_ptr<FileReader>> ModelDisk::open_regular(const std::string& path) {
  DTG_TRY(step());
  const int node = find(path);
  if (node < 0) return missing(path);
  return std::unique_ptr<FileReader>(new ModelReader(*this, node));
}

Result<std::unique_ptr<FileWriter>> ModelDisk::open_new(const std::string& path) {
  DTG_TRY(step());
  int parent = 0;
  std::string name;
  if (!locate(path, &parent, &name)) return missing(path);
  if (find(path) >= 0) return already_exists("\"%s\": file exists", path.c_str());
  const int node = add(false);
  change(parent, "", name, node);
  return std::unique_ptr<FileWriter>(new ModelWriter(*this, node));
}

Result<std::string> ModelDisk::read_file(const std::string& path, int64_t) {
  DTG_TRY(step());
  const int node = find(path);
  return node < 0 ? Result<std::string>(missing(path)) : nodes_[static_cast<size_t>(node)].seen;
}

Status ModelDisk::make_directories(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    if (find(path.substr(0, at)) < 0) DTG_TRY(make_directory(path.substr(0, at)));
  }
  return {};
}

Status ModelDisk::make_directory(const std::string& path) {
  DTG_TRY(step());
  int parent = 0;
  std::string name;
  if (!locate(path, &parent, &name)) return missing(path);
  if (find(path) >= 0) return already_exists("\"%s\": file exists", path.c_str());
  change(parent, "", name, add(true));
  return {};
}

Status ModelDisk::sync_directory(const std::string& path) {
  DTG_TRY(step());
  const int node = find(path);
  return node < 0 ? missing(path) : sync_node(node);
}

Status ModelDisk::sync_file(const std::string& path) {
  DTG_TRY(step());
  const int node = find(path);
  return node < 0 ? missing(path) : sync_node(node);
}

Status ModelDisk::rename(const std::string& from, const std::string& to) {
  DTG_TRY(step());
  const int node = find(from);
  int parent = 0, target = 0;
  std::string name, target_name;
  if (node < 0 || !locate(from, &parent, &name) || !locate(to, &target, &target_name)) return missing(from);
  const int present = find(to);
  if (present >= 0 && !nodes_[static_cast<size_t>(present)].entries.empty()) return failed_precondition("\"%s\": not empty", to.c_str());
  // Only within one directory, which is all that sets need.
  if (parent != target) return unimplemented("rename \"%s\" to \"%s\"", from.c_str(), to.c_str());
  change(parent, name, target_name, node);
  return sync_directory(parent_directory(to));
}

Status ModelDisk::remove(const std::string& path) {
  DTG_TRY(step());
  int parent = 0;
  std::string name;
  const int node = find(path);
  if (node < 0 || !locate(path, &parent, &name)) return missing(path);
  if (!nodes_[static_cast<size_t>(node)].entries.empty()) return failed_precondition("\"%s\": not empty", path.c_str());
  change(parent, name, "", 0);
  return {};
}

Result<bool> ModelDisk::exists(const std::string& path) {
  DTG_TRY(step());
  return find(path) >= 0;
}

Result<FileStat> ModelDisk::look_up(const std::string& path) {
  DTG_TRY(step());
  const int at = find(path);
  if (at < 0) return missing(path);
  const Node& node = nodes_[static_cast<size_t>(at)];
  return FileStat{node.directory ? FileStat::Kind::directory : FileStat::Kind::file, static_cast<int64_t>(node.seen.size()), 0};
}

Result<int64_t> ModelDisk::free_bytes(const std::string&) {
  DTG_TRY(step());
  return free;
}

Result<std::vector<std::string>> ModelDisk::list(const std::string& path) {
  DTG_TRY(step());
  const int at = find(path);
  if (at < 0) return missing(path);
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_[static_cast<size_t>(at)].entries) names.push_back(name);
  return names;
}

void ModelDisk::collect(int at, const std::string& path, std::string& out) const {
  const Node& node = nodes_[static_cast<size_t>(at)];
  out += path + (node.directory ? "/\n" : "=" + node.seen + "\n");
  for (const auto& [name, child] : node.entries) collect(child, path + "/" + name, out);
}

std::string ModelDisk::text() const {
  std::string out;
  collect(0, "", out);
  return out;
}

// ---- crashes ----------------------------------------------------------------------------------------------------------------

std::unique_ptr<ModelDisk> ModelDisk::after_crash(const std::vector<bool>& happened, const std::map<int, int>& contents) const {
  auto disk = std::make_unique<ModelDisk>();
  disk->nodes_ = nodes_;
  disk->free = free;
  for (Node& node : disk->nodes_) node.entries = node.durable_entries, node.seen = node.durable;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (!happened[i]) continue;
    Entries& entries = disk->nodes_[static_cast<size_t>(pending_[i].parent)].entries;
    if (!pending_[i].gone.empty()) entries.erase(pending_[i].gone);
    if (!pending_[i].made.empty()) entries[pending_[i].made] = pending_[i].node;
  }
  for (const auto& [at, kind] : contents) {
    const Node& node = nodes_[static_cast<size_t>(at)];
    const size_t more = node.seen.size() - node.durable.size();
    std::string& seen = disk->nodes_[static_cast<size_t>(at)].seen;
    if (kind == 1) seen = node.seen;
    if (kind == 2) seen = node.seen.substr(0, node.durable.size() + more / 2);
    if (kind == 3) seen = node.durable + std::string(more, '\0');
  }
  for (Node& node : disk->nodes_) node.durable_entries = node.entries, node.durable = node.seen, node.sync_failed = false;
  return disk;
}

std::unique_ptr<ModelDisk> ModelDisk::after_crash(const std::function<int(int n)>& choose) const {
  std::vector<bool> happened;
  std::map<int, int> contents;
  for (size_t i = 0; i < pending_.size(); ++i) happened.push_back(choose(2) == 1);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].seen != nodes_[i].durable) contents[static_cast<int>(i)] = choose(4);
  }
  return after_crash(happened, contents);
}

int ModelDisk::for_each_crash_state(const std::function<void(ModelDisk&)>& fn) const {
  std::vector<int> dirty;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].seen != nodes_[i].durable) dirty.push_back(static_cast<int>(i));
  }
  size_t states = size_t{1} << pending_.size();
  for (size_t i = 0; i < dirty.size(); ++i) states *= 4;
  std::set<std::string> before;
  for (size_t state = 0; state < states; ++state) {
    size_t rest = state;
    std::vector<bool> happened;
    std::map<int, int> contents;
    for (size_t i = 0; i < pending_.size(); ++i, rest /= 2) happened.push_back(rest % 2 == 1);
    for (size_t i = 0; i < dirty.size(); ++i, rest /= 4) contents[dirty[i]] = static_cast<int>(rest % 4);
    const auto disk = after_crash(happened, contents);
    if (before.insert(disk->text()).second) fn(*disk);
  }
  return static_cast<int>(before.size());
}

}  // namespace dtg
