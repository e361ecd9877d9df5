/* events.h: what the library's own threads tell Java: log lines, and borrowed memory that is free again. */
#ifndef DTG_JNI_EVENTS_H
#define DTG_JNI_EVENTS_H

#include <dtg/dtg.h>

void events_log(void* user, dtg_log_level level, const char* component, const char* message);
void events_log_ended(void* user);

/* A dtg_free_fn; `user` comes from events_token. */
void events_freed(void* data, size_t nbytes, void* user);
/* Memory for the news that the buffer of that number is free; NULL without memory. */
void* events_token(int64_t number);
void events_token_unused(void* token);

#endif /* DTG_JNI_EVENTS_H */
