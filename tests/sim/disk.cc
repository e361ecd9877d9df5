// Every call asks first whether its process lives.
#include "disk.h"

namespace dtg::sim {
namespace {

Status dead() { return unavailable("the process was killed"); }

class Writer final : public FileWriter {
 public:
  Writer(std::unique_ptr<FileWriter> file, std::shared_ptr<bool> alive) : file_(std::move(file)), alive_(std::move(alive)) {}
  Status append(std::string_view bytes) override { return *alive_ ? file_->append(bytes) : dead(); }
  Status reserve(int64_t bytes) override { return *alive_ ? file_->reserve(bytes) : dead(); }
  Status sync() override { return *alive_ ? file_->sync() : dead(); }
  Status close() override { return *alive_ ? file_->close() : dead(); }

 private:
  const std::unique_ptr<FileWriter> file_;
  const std::shared_ptr<bool> alive_;
};

Result<std::unique_ptr<FileWriter>> wrapped(Result<std::unique_ptr<FileWriter>> file, const std::shared_ptr<bool>& alive) {
  DTG_TRY(file.status());
  return std::unique_ptr<FileWriter>(std::make_unique<Writer>(file.take(), alive));
}

}  // namespace

Result<std::unique_ptr<FileWriter>> ProcessDisk::open_write(const std::string& path) {
  if (!*alive_) return dead();
  return wrapped(machine_->open_write(path), alive_);
}
Result<std::unique_ptr<FileWriter>> ProcessDisk::open_new(const std::string& path) {
  if (!*alive_) return dead();
  return wrapped(machine_->open_new(path), alive_);
}
Result<std::unique_ptr<FileReader>> ProcessDisk::open_read(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->open_read(path);
}
Result<std::unique_ptr<FileReader>> ProcessDisk::open_regular(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->open_regular(path);
}
Result<std::string> ProcessDisk::read_file(const std::string& path, int64_t bytes_max) {
  if (!*alive_) return dead();
  return machine_->read_file(path, bytes_max);
}
Status ProcessDisk::make_directories(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->make_directories(path);
}
Status ProcessDisk::make_directory(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->make_directory(path);
}
Status ProcessDisk::sync_directory(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->sync_directory(path);
}
Status ProcessDisk::sync_file(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->sync_file(path);
}
Status ProcessDisk::rename(const std::string& from, const std::string& to) {
  if (!*alive_) return dead();
  return machine_->rename(from, to);
}
Status ProcessDisk::remove(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->remove(path);
}
Result<bool> ProcessDisk::exists(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->exists(path);
}
Result<FileStat> ProcessDisk::look_up(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->look_up(path);
}
Result<int64_t> ProcessDisk::free_bytes(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->free_bytes(path);
}
Result<std::vector<std::string>> ProcessDisk::list(const std::string& path) {
  if (!*alive_) return dead();
  return machine_->list(path);
}

}  // namespace dtg::sim
