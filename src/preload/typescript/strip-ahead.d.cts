/** Removes what is kept of files that tests wrote some time ago: they may be different ones each time. */
export function forgetWritten(): void
/** Strips files of the project by one process of esbuild: a thread that loads one that is not stripped starts one for it. */
export function stripAhead(paths: readonly string[]): Promise<void>
