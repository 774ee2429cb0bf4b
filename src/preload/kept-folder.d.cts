/** `src/`, or what is made of it, with a separator at its end. */
export const SOURCE: string
/** The repository, or the package. */
export const ROOT: string
/** Where the packages are that the runtime has. */
export const PACKAGES: string
/** The folder for stripped and compiled code; null where none is kept. */
export const keptFolder: string | null
