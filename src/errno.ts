/** Explains why the system refused a file operation. */
export function explainErrno(error: unknown): string {
  const { code = '', message = String(error) } = error as NodeJS.ErrnoException
  return reasons[code] ?? message
}

const reasons: Record<string, string> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of the path is not a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EEXIST: 'it exists already and was not changed',
  ENAMETOOLONG: 'the name is too long',
  ELOOP: 'the path has too many links',
  EMFILE: 'too many files are open',
  EAGAIN: 'it is not a regular file',
  EINVAL: 'the file system does not allow it',
  EIO: 'the disk reports an error',
}
