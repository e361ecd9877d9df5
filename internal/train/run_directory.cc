// Rows as JSON lines and as a table. See run_directory.h for threads.
#include "train/run_directory.h"

#include "train/patience.h"

namespace dtg {
namespace {

constexpr int64_t kRowsBytesMax = int64_t{256} << 20;

std::string header_of(const Json& row) {
  std::string text;
  for (const auto& [name, value] : *row.object()) text += (text.empty() ? "" : ",") + name;
  return text + "\n";
}

// An empty cell where a value is no finite number, as what reads tables expects it.
std::string cells_of(const Json& row) {
  std::string text;
  bool first = true;
  for (const auto& [name, value] : *row.object()) {
    if (!first) text += ",";
    first = false;
    const double* const real = value.real();
    if (real || value.integer()) text += value.text() == "null" ? "" : value.text();
  }
  return text + "\n";
}

}  // namespace

Result<std::unique_ptr<FileWriter>> open_draft(Disk& disk, const std::string& path) {
  // One that a killed process has left, or a link: the name goes, what it leads to is not touched.
  const Status gone = disk.remove(path);
  if (!gone.ok() && gone.code() != Code::not_found) return gone;
  return disk.open_new(path);
}

Status write_whole(Disk& disk, const std::string& path, std::string_view text) {
  const std::string draft = path + ".new";
  const auto write = [&]() -> Status {
    DTG_ASSIGN(const std::unique_ptr<FileWriter> writer, open_draft(disk, draft));
    DTG_TRY(writer->append(text));
    DTG_TRY(writer->sync());
    DTG_TRY(writer->close());
    return disk.rename(draft, path);
  };
  Status written = write();
  // Of a disk that is full nothing half written stays, which would take what room there is.
  if (!written.ok()) (void)disk.remove(draft).ok();
  return written;
}

// What does not end with a line's end was cut by the machine's, and its epoch is trained again. Elsewhere a line that cannot be read costs
// its own epoch's values, not those of the others.
Result<Json::Array> RunDirectory::open(int64_t epochs, size_t& damaged) {
  DTG_TRY(disk_.make_directories(path_));
  Json::Array rows;
  const std::string path = file("metrics.jsonl");
  DTG_ASSIGN(const bool there, disk_.exists(path));
  if (there && epochs > 0) {
    DTG_ASSIGN(const std::string text, disk_.read_file(path, kRowsBytesMax));
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin)) {
      auto row = parse_json(std::string_view(text).substr(begin, end - begin), "a row of metrics.jsonl");
      if (!row.ok() || !row.value().object()) {
        if (row.status().code() == Code::resource_exhausted) return row.status();
        ++damaged;
        continue;
      }
      if (integer_of(row.value(), "epoch", 0) > epochs) break;
      rows.push_back(row.take());
    }
  }
  const std::string drafts[] = {path + ".new", file("metrics.csv.new")};
  DTG_ASSIGN(lines_, open_draft(disk_, drafts[0]));
  DTG_ASSIGN(table_, open_draft(disk_, drafts[1]));
  columns_.clear();
  for (const Json& row : rows) {
    DTG_TRY(lines_->append(row.text() + "\n"));
    DTG_TRY(write_csv(row));
  }
  // What is appended from here on goes to the same files under their names.
  DTG_TRY(lines_->sync());
  DTG_TRY(disk_.rename(drafts[0], path));
  DTG_TRY(disk_.rename(drafts[1], file("metrics.csv")));
  return rows;
}

Status RunDirectory::write_csv(const Json& row) {
  std::string columns = header_of(row);
  // Another header in the middle says that a training which went on has other columns from there on.
  if (columns != columns_) {
    columns_ = std::move(columns);
    DTG_TRY(table_->append(columns_));
  }
  return table_->append(cells_of(row));
}

Status RunDirectory::append(const Json& row) {
  DTG_TRY(lines_->append(row.text() + "\n"));
  DTG_TRY(write_csv(row));
  DTG_TRY(table_->sync());
  return lines_->sync();
}

Status RunDirectory::write_summary(const Json& summary) { return write_whole(disk_, file("summary.json"), summary.text() + "\n"); }

}  // namespace dtg
