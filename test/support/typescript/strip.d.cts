/** Removes what is kept of files that tests wrote some time ago: they may be different ones each time. */
export function forgetWritten(): void
/** The text of a TypeScript file as a CommonJS module. */
export function strip(path: string, text: string): string
