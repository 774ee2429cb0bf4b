/** `import.meta.resolve` for modules that were made CommonJS: `require.resolve` chooses other files of a package. */
export const resolve = (name) => import.meta.resolve(name)
