#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where examples lie on the disk: the keys of [data NAME] that a coordinator and a device have in common. docs/devices.md lists these keys;
 * data/ reads the files.
 */
#define DATA_SOURCE_TEXT 1024
#define DATA_SOURCE_WINDOW 64
#define DATA_SOURCE_WINDOW_MAX 65536

enum data_format {
	DATA_GLYPHS, /* drawn, no file */
	DATA_IDX,
	DATA_CSV,
	DATA_NPY,
	DATA_TEXT,
	DATA_PACKED,
	DATA_EXTERNAL, /* only a trainer reads it */
	DATA_FORMATS
};

enum data_separator { DATA_GUESS, DATA_COMMA, DATA_SEMICOLON, DATA_TAB };
enum data_header { DATA_HEADER_GUESS, DATA_HEADER_YES, DATA_HEADER_NO };

struct data_source {
	enum data_format format;
	char images[DATA_SOURCE_TEXT], labels[DATA_SOURCE_TEXT]; /* idx */
	char x[DATA_SOURCE_TEXT], y[DATA_SOURCE_TEXT]; /* npy */
	char path[DATA_SOURCE_TEXT]; /* csv, text, packed, external */
	char vocabulary[DATA_SOURCE_TEXT]; /* text: a file; "": bytes */
	uint64_t window; /* text: tokens of an example */
	uint64_t examples; /* external: how many there are */
	/* csv: */
	char label[DATA_SOURCE_TEXT]; /* a name or number; "last" */
	char columns[DATA_SOURCE_TEXT]; /* the features; "": all others */
	enum data_separator separator;
	enum data_header header;
	char missing[32]; /* "skip" or a number; "": an error */
	char shape[DATA_SOURCE_TEXT]; /* of a line's features; "": flat */
	bool regression; /* csv, idx, npy */
	char classes
	    [DATA_SOURCE_TEXT]; /* names, comma separated; "": none, or of csv the sorted ones */
};

/* The words of `format`, in the enum's order, ended by NULL. */
extern const char *const data_source_formats[];
extern const char *const data_source_kinds[], *const data_source_separators[],
						  *const data_source_headers[];

/* Returns NULL, or what is wrong with *key. */
const char *data_source_check(const struct data_source *s, const char **key);
/* Writes the file paths that *s names to out; returns how many there are. */
#define DATA_SOURCE_FILES 3
size_t data_source_files(const struct data_source *s, const char *out[DATA_SOURCE_FILES]);
/* Returns the number of names in a comma-separated list. If out is not NULL, copies name i there, without blanks around it and cut to
 * `room` bytes with its zero byte. */
size_t data_source_names(const char *list, size_t i, char *out, size_t room);

/* --- the table of keys, for a section that fills a struct with a member `source` */
#define DATA_IN(format) (1u << (format))
#define DATA_IN_ALL (DATA_IN(DATA_FORMATS) - 1)
#define DATA_IN_KIND (DATA_IN(DATA_IDX) | DATA_IN(DATA_CSV) | DATA_IN(DATA_NPY))
#define DATA_IN_PATH \
	(DATA_IN(DATA_CSV) | DATA_IN(DATA_TEXT) | DATA_IN(DATA_PACKED) | DATA_IN(DATA_EXTERNAL))
/* clang-format off */
#define DATA_SOURCE_KEYS(type) \
	{"format", ini_choice, MEMBER(type, source.format), .words = data_source_formats, .needs = DATA_IN_ALL}, \
	{"images", ini_text, MEMBER(type, source.images), .forms = DATA_IN(DATA_IDX), .needs = DATA_IN(DATA_IDX)}, \
	{"labels", ini_text, MEMBER(type, source.labels), .forms = DATA_IN(DATA_IDX), .needs = DATA_IN(DATA_IDX)}, \
	{"x", ini_text, MEMBER(type, source.x), .forms = DATA_IN(DATA_NPY), .needs = DATA_IN(DATA_NPY)}, \
	{"y", ini_text, MEMBER(type, source.y), .forms = DATA_IN(DATA_NPY), .needs = DATA_IN(DATA_NPY)}, \
	{"path", ini_text, MEMBER(type, source.path), .forms = DATA_IN_PATH, .needs = DATA_IN_PATH}, \
	{"vocabulary", ini_text, MEMBER(type, source.vocabulary), .fallback = NULL, .forms = DATA_IN(DATA_TEXT)}, \
	{"window", ini_number, MEMBER(type, source.window), 1, DATA_SOURCE_WINDOW_MAX, .fallback = "64", \
	    .forms = DATA_IN(DATA_TEXT)}, \
	{"examples", ini_number, MEMBER(type, source.examples), 1, 100000000, .forms = DATA_IN(DATA_EXTERNAL), \
	    .needs = DATA_IN(DATA_EXTERNAL)}, \
	{"label", ini_text, MEMBER(type, source.label), .fallback = "last", .forms = DATA_IN(DATA_CSV)}, \
	{"columns", ini_text, MEMBER(type, source.columns), .fallback = NULL, .forms = DATA_IN(DATA_CSV)}, \
	{"separator", ini_choice, MEMBER(type, source.separator), .fallback = "guess", \
	    .words = data_source_separators, .forms = DATA_IN(DATA_CSV)}, \
	{"header", ini_choice, MEMBER(type, source.header), .fallback = "guess", .words = data_source_headers, .forms = DATA_IN(DATA_CSV)}, \
	{"missing", ini_text, MEMBER(type, source.missing), .fallback = NULL, .forms = DATA_IN(DATA_CSV)}, \
	{"shape", ini_text, MEMBER(type, source.shape), .fallback = NULL, .forms = DATA_IN(DATA_CSV)}, \
	{"kind", ini_choice, MEMBER(type, source.regression), .fallback = "class", .words = data_source_kinds, .forms = DATA_IN_KIND}, \
	{"classes", ini_text, MEMBER(type, source.classes), .fallback = NULL}
/* clang-format on */

#endif
