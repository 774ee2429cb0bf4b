/** The manifest of the package, of that of the repository. */
export function packedManifest(manifest: Record<string, unknown>): Record<string, unknown>
