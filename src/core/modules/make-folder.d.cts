/** Makes a folder, and those above it that are missing. @throws what the system says */
export declare function makeFolder(path: string, mode?: number): void
