/** By its path, somebody publishes an event. What that causes is to be seen. */
const PUBLISH = '/system/events/publish'

/** Routes of the runtime whose requests are kept only if they have failed: its own pages poll. @param route template of a path */
export const isOwnPage = (route: string): boolean => route.startsWith('/system/') && route !== PUBLISH
