#include <stddef.h>

#include "buf.h"
#include "metrics_inside.h"
#include "tls.h"
#include "version.h"

static enum err
build_info(struct buf *out, const struct metrics_view *v, const struct metrics_job *j)
{
	(void)v;
	(void)j;
	enum err e = buf_printf(out, "version=\"%s\",backend=\"", version_text());
	e = e ? e : metrics_print_text(out, tls_backend());
	return e ? e : buf_append(out, "\"", 1);
}

static enum err
job_info(struct buf *out, const struct metrics_view *v, const struct metrics_job *j)
{
	(void)v;
	enum err e = buf_printf(out, ",name=\"");
	e = e ? e : metrics_print_text(out, j->name);
	return e ? e : buf_append(out, "\"", 1);
}

#define VALUE(kind, member) .value = METRICS_##kind, .at = offsetof(struct metrics_view, member)
#define OF_JOB(kind, member) \
	.value = METRICS_##kind, .of_jobs = true, .at = offsetof(struct metrics_job, member)
#define COUNTS .type = METRICS_COUNTER
#define SHOWS .type = METRICS_GAUGE
#define SPREAD(s, member) .type = METRICS_HISTOGRAM, .scale = HISTOGRAM_##s, VALUE(BUCKETS, member)
#define BY(...) .labels = {__VA_ARGS__}
#define WAS(path) .report = path

/* In the order in which they are printed; docs/metrics.md has the same names. */
/* clang-format off */
const struct metrics_row metrics_rows[] = {
    {"rivulet_build_info", SHOWS, .value = METRICS_INFO, .info = build_info, .help = "The version, and the library behind TLS."},
    {"rivulet_ready", SHOWS, VALUE(BOOL, ready), .help = "1: the coordinator hands out tasks and takes deltas, as /readyz says."},
    {"rivulet_not_ready", SHOWS, VALUE(ENUM, unready), BY(&metrics_label_unready), .help = "1: why the coordinator is not ready."},
    {"rivulet_health_failures_total", COUNTS, VALUE(U64, health.failures_total), WAS("health.failures_total"), .help = "Times that the coordinator ceased to be ready."},
    {"rivulet_incarnation", SHOWS, VALUE(U64, incarnation), .help = "Rises by one when a state directory is restored from a backup."},
    {"rivulet_certificate_expiry_timestamp_seconds", SHOWS, VALUE(DOUBLE, certificate_ends), .help = "When the server's certificate ends."},
    {"rivulet_ca_expiry_timestamp_seconds", SHOWS, VALUE(DOUBLE, ca_ends), .help = "When the certificate of the CA in use ends."},
    {"rivulet_ca_generation", SHOWS, VALUE(U64, ca_generation), .help = "The generation of the CA in use."},
    {"rivulet_ca_rotating", SHOWS, VALUE(BOOL, ca_rotating), .help = "1: the CA is being replaced."},
    {"rivulet_clock_doubted", SHOWS, VALUE(ENUM, age.doubt), BY(&metrics_label_doubt), .help = "1: why the clock is not believed; then nothing is deleted for its age."},
    {"rivulet_clock_steps_total", COUNTS, VALUE(U64, age.steps_total), .help = "Times that the clock was found to have stepped by more than an hour."},
    {"rivulet_log_lines_skipped_total", COUNTS, VALUE(U64, log_skipped), .help = "Lines left out of the log, as too many came at once (log.skipped)."},

    {"rivulet_connections", SHOWS, VALUE(U64, server.connections), WAS("server.connections"), .help = "Open connections."},
    {"rivulet_connections_total", COUNTS, VALUE(U64, server.connections_total), WAS("server.connections_total"), .help = "Connections accepted."},
    {NULL, COUNTS, VALUE(U64, handshakes_total), WAS("server.handshakes_total")},
    {NULL, COUNTS, VALUE(U64, handshakes_failed_total), WAS("server.handshakes_failed_total")},
    {"rivulet_tls_handshakes_total", COUNTS, VALUE(U64, server.handshakes), BY(&metrics_label_handshake), .help = "TLS handshakes by what came of them; expired: with a certificate that may only renew itself."},
    {NULL, COUNTS, VALUE(U64, by_class), BY(&metrics_label_class), WAS("server.responses_total.*")},
    {"rivulet_http_responses_total", COUNTS, VALUE(U64, server.responses), BY(&metrics_label_route, &metrics_label_class), .help = "Answers by route and class of status; route none: no route answered."},
    {"rivulet_http_refusals_total", COUNTS, VALUE(U64, server.refusals), BY(&metrics_label_error), .help = "Refused requests by error word."},
    {"rivulet_http_received_bytes_total", COUNTS, VALUE(U64, server.received_bytes_total), WAS("server.received_bytes_total"), .help = "Bytes received, inside TLS."},
    {"rivulet_http_sent_bytes_total", COUNTS, VALUE(U64, server.sent_bytes_total), WAS("server.sent_bytes_total"), .help = "Bytes sent, inside TLS."},

    {"rivulet_devices", SHOWS, VALUE(U64, registry.by_state), BY(&metrics_label_device_state), WAS("registry.*"), .help = "Devices on record by state."},
    {"rivulet_devices_seen", SHOWS, VALUE(U64, registry.seen), WAS("registry.seen"), .help = "Devices in contact within the last minutes."},
    {"rivulet_devices_not_renewed", SHOWS, VALUE(U64, registry.not_renewed), WAS("registry.not_renewed"), .help = "Active and suspended devices whose certificate is of a CA before the newest."},
    {"rivulet_devices_contested", SHOWS, VALUE(U64, registry.contested), .help = "Devices suspended because several keys claim to be theirs."},
    {"rivulet_devices_locked_out", SHOWS, VALUE(U64, registry.locked_out), WAS("registry.locked_out"), .help = "Active devices whose certificate was refused at their last contact."},
    {"rivulet_devices_waiting", SHOWS, VALUE(U64, registry.waiting), BY(&metrics_label_wait), .help = "Devices that wait, by the reason they were told last; a device counts once for each job."},
    {"rivulet_devices_gave_up", SHOWS, VALUE(U64, registry.gave_up), BY(&metrics_label_abort), .help = "Devices that gave up their last task of a job, by reason; a device counts once for each job."},

    {"rivulet_jobs", SHOWS, VALUE(U64, engine.jobs), BY(&metrics_label_job_state), WAS("engine.jobs.*"), .help = "Jobs by state."},
    {"rivulet_jobs_lacking", SHOWS, VALUE(U64, engine.jobs_lacking), WAS("engine.jobs_lacking"), .help = "Paused jobs that wait for a file that is missing or damaged."},
    {"rivulet_jobs_stuck", SHOWS, VALUE(U64, stuck), BY(&metrics_label_stuck), .help = "Jobs that make no progress, by kind; paused: by hand."},
    {"rivulet_tasks_total", COUNTS, VALUE(U64, engine.tasks_total), WAS("engine.tasks_total"), .help = "Tasks handed out, each once however often its device asks."},
    {"rivulet_task_asks_total", COUNTS, VALUE(U64, engine.task_asks_total), .help = "Looks for a device's work: one as it asks, and one each time that its waiting request is woken."},
    {"rivulet_job_changes_total", COUNTS, VALUE(U64, engine.changes_total), .help = "Changes of jobs, as GET /v1/changes counts them."},
    {"rivulet_change_readers", SHOWS, VALUE(U64, engine.readers), .help = "Requests that wait for such a change."},
    {"rivulet_change_readers_refused_total", COUNTS, VALUE(U64, engine.readers_refused_total), .help = "Requests to wait for one that found no place."},
    {NULL, COUNTS, VALUE(U64, engine.tasks_aborted_total), WAS("engine.tasks_aborted_total")},
    {"rivulet_tasks_aborted_total", COUNTS, VALUE(U64, engine.aborted), BY(&metrics_label_abort), .help = "Tasks that devices gave up, by reason."},
    {NULL, COUNTS, VALUE(U64, engine.deltas_total), WAS("engine.deltas_total")},
    {"rivulet_deltas_total", COUNTS, VALUE(U64, engine.deltas), BY(&metrics_label_codec), .help = "Accepted deltas by codec."},
    {NULL, COUNTS, VALUE(U64, engine.delta_bytes_total), WAS("engine.delta_bytes_total")},
    {"rivulet_delta_bytes_total", COUNTS, VALUE(U64, engine.delta_bytes), BY(&metrics_label_codec), .help = "Bytes of accepted deltas by codec."},
    {"rivulet_delta_staleness_rounds", SPREAD(ROUNDS, engine.staleness_rounds), .help = "Rounds between the model a delta starts from and the round that takes it."},
    {"rivulet_downloads_total", COUNTS, VALUE(U64, models.downloads_total), BY(&metrics_label_source), .help = "Answers with a model, by what was sent; range: a download that goes on."},
    {"rivulet_download_bytes_total", COUNTS, VALUE(U64, models.download_bytes_total), BY(&metrics_label_source), .help = "Bytes of these answers."},
    {"rivulet_rounds_committed_total", COUNTS, VALUE(U64, engine.rounds_committed_total), WAS("engine.rounds_committed_total"), .help = "Rounds that made a model."},
    {"rivulet_rounds_failed_total", COUNTS, VALUE(U64, engine.rounds_failed_total), WAS("engine.rounds_failed_total"), .help = "Rounds that made none."},
    {"rivulet_rounds_reopened_total", COUNTS, VALUE(U64, engine.rounds_reopened_total), WAS("engine.rounds_reopened_total"), .help = "Times that a round was opened again, as too few reports came before its deadline."},
    {"rivulet_round_seconds", SPREAD(LONG, engine.round_seconds), WAS("engine.round_seconds"), .help = "From the opening of a round to its model."},
    {"rivulet_fold_seconds", SPREAD(FINE, engine.fold_seconds), WAS("engine.fold_seconds"), .help = "From a round's first delta to its model's metric."},
    {"rivulet_report_delay_seconds", SPREAD(LONG, engine.report_seconds), .help = "From a task that goes out to its accepted report."},
    {"rivulet_evaluation_seconds", SPREAD(LONG, engine.evaluation_seconds), .help = "Evaluations of a model at its round's end, here or by a program."},
    {"rivulet_engine_lock_held_seconds", SPREAD(FINE, engine.lock.held_seconds), WAS("engine.lock_held_seconds"), .help = "How long the lock of the jobs was held."},
    {"rivulet_engine_lock_held_cpu_seconds_max", SHOWS, VALUE(DOUBLE, engine.lock.held_cpu_seconds_max), WAS("engine.lock_held_cpu_seconds_max"), .help = "The most processor time that a holder of the lock of the jobs used."},

    {"rivulet_store_commits_total", COUNTS, VALUE(U64, store.commits_total), WAS("store.commits_total"), .help = "Transactions of the database."},
    {"rivulet_store_works_total", COUNTS, VALUE(U64, store.works_total), WAS("store.works_total"), .help = "Changes written in them."},
    {"rivulet_store_commit_seconds", SPREAD(FINE, store.commit_seconds), WAS("store.commit_seconds"), .help = "Commits, with the syncing of new files' names."},
    {"rivulet_spool_bytes", SHOWS, VALUE(U64, spool.used_bytes), WAS("spool.used_bytes"), .help = "Bytes of deltas of open rounds."},
    {"rivulet_spool_quota_bytes", SHOWS, VALUE(U64, spool.quota_bytes), WAS("spool.quota_bytes"), .help = "The most that they may be; 0: no limit."},
    {"rivulet_kept_deltas", SHOWS, VALUE(U64, archive.deltas), WAS("spool.kept_deltas"), .help = "Kept deltas of ended rounds."},
    {"rivulet_kept_bytes", SHOWS, VALUE(U64, archive.used_bytes), WAS("spool.kept_bytes"), .help = "Their bytes."},
    {"rivulet_lost_files", SHOWS, VALUE(DOUBLE, disk.lost_files), .help = "Models and deltas that no row of the database explains."},
    {"rivulet_lost_bytes", SHOWS, VALUE(DOUBLE, disk.lost_bytes), .help = "Their bytes."},
    {"rivulet_disk_free_bytes", SHOWS, VALUE(DOUBLE, disk.free_bytes), .help = "Free on the state directory's file system, at the last look (every ten seconds)."},
    {"rivulet_disk_total_bytes", SHOWS, VALUE(DOUBLE, disk.total_bytes), .help = "That file system's size; 0: it does not tell."},
    {"rivulet_disk_forecast_bytes", SHOWS, VALUE(DOUBLE, disk.need_bytes), .help = "What running and paused jobs will still take of it."},
    {"rivulet_models_bytes", SHOWS, VALUE(DOUBLE, disk.models_bytes), .help = "Bytes of models and optimizer states."},
    {"rivulet_database_bytes", SHOWS, VALUE(DOUBLE, disk.database_bytes), .help = "Bytes of the database with its log."},
    {"rivulet_reserve_wanted_bytes", SHOWS, VALUE(U64, reserve_wanted), .help = "The reserve for administration on a full disk, as it is set."},
    {"rivulet_reserve_bytes", SHOWS, VALUE(U64, reserve_bytes), .help = "What of it is there now."},

    {"rivulet_metrics_jobs_omitted", SHOWS, VALUE(U64, jobs_omitted), .help = "Running and paused jobs, and those that ended lately, without series of their own."},
    {"rivulet_job_info", SHOWS, .value = METRICS_INFO, .of_jobs = true, .info = job_info, .help = "A job's name."},
    {"rivulet_job_state", SHOWS, OF_JOB(ENUM, state), BY(&metrics_label_job_state), .help = "1: the job's state."},
    {"rivulet_job_stuck", SHOWS, OF_JOB(BOOL, stuck), .help = "1: the job cannot move, and nobody paused it."},
    {"rivulet_job_stuck_since_timestamp_seconds", SHOWS, OF_JOB(DOUBLE, stuck_since), .help = "Since when; NaN: it moves."},
    {"rivulet_job_round", SHOWS, OF_JOB(U64, round), .help = "The job's round."},
    {"rivulet_job_rounds_committed_total", COUNTS, OF_JOB(U64, rounds_committed), .help = "Rounds of the job that made a model."},
    {"rivulet_job_round_reports", SHOWS, OF_JOB(DOUBLE, reports), .help = "Accepted reports of the open round; NaN, here and below: no round is open."},
    {"rivulet_job_round_goal", SHOWS, OF_JOB(DOUBLE, goal), .help = "Reports that close it at once."},
    {"rivulet_job_round_quorum", SHOWS, OF_JOB(DOUBLE, quorum), .help = "Reports that suffice at its deadline."},
    {"rivulet_job_round_invited", SHOWS, OF_JOB(DOUBLE, invited), .help = "Devices with a task of it."},
    {"rivulet_job_round_reopened", SHOWS, OF_JOB(DOUBLE, reopened), .help = "How often it was opened again."},
    {"rivulet_job_round_opened_timestamp_seconds", SHOWS, OF_JOB(DOUBLE, opened_at), .help = "When it was opened."},
    {"rivulet_job_round_deadline_timestamp_seconds", SHOWS, OF_JOB(DOUBLE, deadline_at), .help = "Its deadline."},
    {"rivulet_job_loss", SHOWS, OF_JOB(DOUBLE, loss), .help = "Loss of the last model that was measured."},
    {"rivulet_job_accuracy", SHOWS, OF_JOB(DOUBLE, accuracy), .help = "Its accuracy, 0 to 1."},
    {"rivulet_job_metric_round", SHOWS, OF_JOB(DOUBLE, metric_round), .help = "The round that made that model."},

    {"process_cpu_seconds_total", COUNTS, VALUE(DOUBLE, process.cpu_seconds), .help = "Processor time of the coordinator."},
    {"process_start_time_seconds", SHOWS, VALUE(DOUBLE, process.start_time), .help = "Unix time of its start."},
    {"process_resident_memory_bytes", SHOWS, VALUE(DOUBLE, process.resident_bytes), .help = "Its memory in use."},
    {"process_virtual_memory_bytes", SHOWS, VALUE(DOUBLE, process.virtual_bytes), .help = "Its address space."},
    {"process_open_fds", SHOWS, VALUE(DOUBLE, process.open_fds), .help = "Its open files and connections."},
    {"process_max_fds", SHOWS, VALUE(DOUBLE, process.max_fds), .help = "The most that it may have."},
};
/* clang-format on */

size_t
metrics_rows_count(void)
{
	return sizeof(metrics_rows) / sizeof(*metrics_rows);
}
