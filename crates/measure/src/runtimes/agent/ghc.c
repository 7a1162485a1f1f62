/* GHC's runtime always keeps exact counts in an internal structure. If the program has symbols, the structure is read
 * when the process ends. Times and pauses come from the report of the option `-s`, which every default build accepts;
 * text.c removes the report from standard error. */
#include <elf.h>
#include <link.h>

#include "agent.h"

extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *) WEAK;

enum { NO_OPTIONS = 0, IGNORE = 1, IGNORE_ALL = 2 };
enum value { GCS, MAJOR_GCS, ALLOCATED, MAX_LIVE, MAX_IN_USE, COPIED, HAVE_STRUCTURE, OPTIONS_PLUS_ONE, SHUT_DOWN, ANEW, FULL,
             /* What follows the fields of `struct stats`, among it times in nanoseconds: how many words, and the words.
              * Their order differs between versions; ghc/times.rs finds the times by the report. */
             REST_SIZE, REST };

/* The beginning of the runtime's structure, which has not changed since GHC 8.2. */
struct stats {
    uint32_t gcs, major_gcs;
    uint64_t allocated, max_live, max_large, max_compact, max_slop, max_in_use, cumulative_live, copied;
};

static const volatile struct stats *stats;
static uint64_t stats_size;
static const volatile int *users; /* zero once the runtime has shut down, and its counts are complete */
static struct stats before; /* the values at the start of a forked child */
static int resets;          /* a child of `forkProcess` counts its collections from zero */

struct search {
    uint64_t stats, stats_size, config, users;
    int looks;  /* the program itself reads whether statistics are kept */
    int resets; /* its runtime restarts its counts in forked children */
};

/* Looks up local symbols in the symbol table. Several object files may have a `stats`; the runtime's is next to
 * the array of the longest pauses. */
static void search_symbols(const char *image, size_t size, struct search *found) {
    const Elf64_Ehdr *head = (const void *)image;
    if (size < sizeof *head || head->e_ident[EI_CLASS] != ELFCLASS64) return;
    if (head->e_shoff == 0 || head->e_shoff + (size_t)head->e_shnum * sizeof(Elf64_Shdr) > size) return;
    const Elf64_Shdr *sections = (const void *)(image + head->e_shoff);
    uint64_t candidates[16], sizes[16], pauses = 0;
    int n = 0;
    for (int i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *table = &sections[i];
        if (table->sh_type != SHT_SYMTAB || table->sh_link >= head->e_shnum) continue;
        const Elf64_Shdr *strings = &sections[table->sh_link];
        if (table->sh_offset + table->sh_size > size || strings->sh_offset + strings->sh_size > size) return;
        const Elf64_Sym *symbol = (const void *)(image + table->sh_offset);
        const Elf64_Sym *end = symbol + table->sh_size / sizeof *symbol;
        const char *names = image + strings->sh_offset;
        for (; symbol < end; symbol++) {
            if (symbol->st_name >= strings->sh_size) continue;
            const char *name = names + symbol->st_name;
            if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC) {
                found->looks |= same(name, "getRTSStatsEnabled");
                found->resets |= same(name, "resetChildProcessStats");
            }
            if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) continue;
            if (same(name, "stats") && symbol->st_size >= sizeof(struct stats) && n < 16) {
                sizes[n] = symbol->st_size;
                candidates[n++] = symbol->st_value;
            } else if (same(name, "GC_coll_max_pause")) pauses = symbol->st_value;
            else if (same(name, "rtsConfig")) found->config = symbol->st_value;
            else if (same(name, "hs_init_count")) found->users = symbol->st_value;
        }
    }
    for (int i = 0; i < n && pauses; i++)
        if (candidates[i] < pauses + 512 && pauses < candidates[i] + 1024) {
            found->stats = candidates[i];
            found->stats_size = sizes[i];
        }
}

static int first_object(struct dl_phdr_info *info, size_t size, void *base) {
    (void)size;
    *(uint64_t *)base = info->dlpi_addr;
    return 1;
}

static struct search look_at_program(void) {
    struct search found = {0};
    int file = system_open("/proc/self/exe", O_RDONLY);
    if (file < 0) return found;
    long size = call6(SYS_lseek, file, 0, 2, 0, 0, 0);
    const char *image = size > 0 ? system_map_content(file, (size_t)size) : NULL;
    system_close(file);
    if (!image) return found;
    search_symbols(image, (size_t)size, &found);
    system_unmap((void *)image, (size_t)size);
    uint64_t base = 0;
    if ((found.stats || found.config || found.users) && dl_iterate_phdr) dl_iterate_phdr(first_object, &base);
    if (found.stats) found.stats += base;
    if (found.config) found.config += base;
    if (found.users) found.users += base;
    return found;
}

static void remember(const struct search *found) {
    stats = (const volatile struct stats *)found->stats;
    stats_size = found->stats_size;
    users = (const volatile int *)found->users;
    resets = found->resets;
}

static int read_at(int file, void *to, size_t size, uint64_t offset) {
    return call6(SYS_pread64, file, (long)to, (long)size, (long)offset, 0, 0) == (long)size;
}

/* Whether these options, which the user has set, already make the runtime report. */
static int reports(const char *options) {
    for (const char *at = options; at && *at; at++)
        if (*at == '-' && (at == options || at[-1] == ' ' || at[-1] == '"') &&
            (at[1] == 's' || at[1] == 'S' || at[1] == 't' || at[1] == 'T' || begins(at, "--machine-readable")))
            return 1;
    return 0;
}

static int command_line_reports(void) {
    enum { MOST = 65536 };
    size_t size;
    char *words = system_take_text("/proc/self/cmdline", MOST, &size);
    int inside = 0, found = 0;
    for (size_t i = 0; i < size && !found; i += length(words + i) + 1) {
        if (same(words + i, "+RTS")) inside = 1;
        else if (same(words + i, "-RTS")) inside = 0;
        else found = inside && reports(words + i);
    }
    if (words) system_unmap(words, MOST);
    return found;
}

/* Makes the runtime accept all options, which it has not read yet. */
static int open_options(uint64_t config) {
    enum { SAFE_ONLY = 3, ALL = 4 };
    uint32_t *options = (uint32_t *)config;
    if (*options == SAFE_ONLY) *options = ALL;
    return *options == ALL;
}

const char *ask_ghc(const char *user) {
    static char answer[8192];
    if (!asker_holds("Link with -rtsopts to enable them.")) return NULL;
    struct record *record = claim(GHC);
    if (!record) return NULL;
    struct search found = look_at_program();
    remember(&found);
    record->value[HAVE_STRUCTURE] = stats != NULL;
    follow_forks();
    int refuses = found.looks || reports(user) || command_line_reports();
    if (found.config) {
        uint32_t options = *(const uint32_t *)found.config;
        /* A boolean between the two fields has changed its size: it had 8 bytes, and has 1 now. */
        const char *const *field = (const char *const *)(found.config + 8);
        const char *built_in = (uintptr_t)field[0] > 4096 ? field[0] : field[1];
        record->value[OPTIONS_PLUS_ONE] = options + 1;
        refuses |= options == NO_OPTIONS || options == IGNORE_ALL || ((uintptr_t)built_in > 4096 && reports(built_in));
    }
    listen_to(GHC, !refuses, user);
    if (refuses) {
        record->flags |= REFUSED;
        return NULL;
    }
    /* The times of single collections are only in the log that -S writes. */
    const char *option = every_collection() ? "-S" : "-s";
    /* Only collections of the oldest generation show live data. With these options one runs whenever that
     * generation has grown by a tenth. The program must accept options that change how it runs. */
    if (full_collections() && found.config && open_options(found.config)) {
        option = "-s -F1.1 -O4k";
        record->value[FULL] = 1;
    }
    char *at = answer, *end = answer + sizeof answer;
    if (user && length(user) + 8 > sizeof answer) return NULL;
    if (user && *user) at = put(put(at, end, user), end, " ");
    put(at, end, option);
    record->flags |= ASKED;
    return answer;
}

/* Recognises a program whose runtime ignores all options and therefore never reads its variable: an unstripped one
 * has a link note. */
void start_ghc(void) {
    Elf64_Ehdr head;
    static char names[4096];
    static Elf64_Shdr sections[96];
    int file = system_open("/proc/self/exe", O_RDONLY), found = 0;
    if (file < 0) return;
    if (read_at(file, &head, sizeof head, 0) && head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_shnum <= 96 &&
        head.e_shstrndx < head.e_shnum && head.e_shentsize == sizeof *sections &&
        read_at(file, sections, head.e_shnum * sizeof *sections, head.e_shoff)) {
        const Elf64_Shdr *strings = &sections[head.e_shstrndx];
        if (strings->sh_size < sizeof names && read_at(file, names, strings->sh_size, strings->sh_offset))
            for (int i = 0; i < head.e_shnum; i++)
                if (sections[i].sh_name < strings->sh_size)
                    found |= same(names + sections[i].sh_name, ".debug-ghc-link-info");
    }
    system_close(file);
    struct record *record = found ? claim(GHC) : NULL;
    if (!record) return;
    struct search look = look_at_program();
    remember(&look);
    record->value[HAVE_STRUCTURE] = stats != NULL;
    follow_forks();
}

static void snapshot(struct stats *to) {
    to->gcs = stats->gcs;
    to->major_gcs = stats->major_gcs;
    to->allocated = stats->allocated;
    to->max_live = stats->max_live;
    to->max_in_use = stats->max_in_use;
    to->copied = stats->copied;
}

void fork_ghc(struct record *record) {
    record->value[HAVE_STRUCTURE] = stats != NULL;
    if (stats) snapshot(&before);
}

/* Reads the counts from memory only, because the runtime's functions must not be called after its shutdown. */
void finish_ghc(struct record *record) {
    if (!stats) return;
    struct stats end;
    snapshot(&end);
    /* In a child whose runtime was restarted, only the bytes continue from the parent's value. A child that was
     * forked without the runtime, to execute another program, still has all of the parent's values. */
    int untouched = end.gcs == before.gcs && end.copied == before.copied && end.allocated == before.allocated;
    if ((record->flags & FORKED) && resets && !untouched) {
        before.gcs = before.major_gcs = 0;
        before.copied = 0;
        if (end.allocated < before.allocated) before.allocated = 0;
        record->value[ANEW] = 1;
    }
    record->value[GCS] = end.gcs - before.gcs;
    record->value[MAJOR_GCS] = end.major_gcs - before.major_gcs;
    record->value[ALLOCATED] = end.allocated - before.allocated;
    record->value[MAX_LIVE] = end.max_live;
    record->value[MAX_IN_USE] = end.max_in_use;
    record->value[COPIED] = end.copied - before.copied;
    record->value[SHUT_DOWN] = !users || *users <= 0;
    const volatile uint64_t *rest = (const volatile uint64_t *)(stats + 1);
    uint64_t n = (stats_size - sizeof *stats) / sizeof *rest, most = sizeof record->value / sizeof *rest - REST;
    record->value[REST_SIZE] = n < most ? n : most;
    for (uint64_t i = 0; i < record->value[REST_SIZE]; i++) record->value[REST + i] = rest[i];
    record->flags |= REPORTED;
}
