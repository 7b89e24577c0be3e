"""Where studies are kept: in memory, in a SQLite file, in a database by URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy.event
import sqlalchemy.exc
from optuna.exceptions import StorageInternalError
from optuna.study import Study

from groundstate.errors import DataError, StoreError, Unsupported


def open_study(storage: Any, name: str) -> Study:
    """The study of that name; a path is a SQLite file."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with spoken(storage):
            if isinstance(storage, Path) or (isinstance(storage, str) and "://" not in storage):
                storage = sqlite_storage(storage)
            return optuna.create_study(
                storage=storage, study_name=name, direction="minimize", load_if_exists=True
            )
    finally:
        optuna.logging.set_verbosity(level)


def sqlite_storage(path: str | Path) -> optuna.storages.RDBStorage:
    """A SQLite file that survives a killed process; it does not wait for the disk to turn."""
    where = Path(path)
    where.parent.mkdir(parents=True, exist_ok=True)
    storage = optuna.storages.RDBStorage(f"sqlite:///{where}")

    def quick(connection: Any, _: Any) -> None:
        # the journal is a file, so that a commit cut short by a kill is undone by the next reader
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA journal_mode=TRUNCATE")

    sqlalchemy.event.listen(storage.engine, "connect", quick)
    storage.engine.dispose()  # open connections have not heard of it
    return storage


@contextmanager
def spoken(storage: Any) -> Iterator[None]:
    """Errors of a database as one sentence."""
    try:
        yield
    except (ImportError, sqlalchemy.exc.NoSuchModuleError) as error:
        raise Unsupported(
            f"{named(storage)} needs a driver; for PostgreSQL pip install 'groundstate[postgres]'"
        ) from error
    except sqlalchemy.exc.ArgumentError as error:
        raise DataError(
            f"storage is a file or a URL such as postgresql://user@host/name, not {named(storage)}"
        ) from error
    except (sqlalchemy.exc.SQLAlchemyError, StorageInternalError) as error:
        raise StoreError(f"{named(storage)} cannot be used: {_reason(error)}") from error


def named(storage: Any) -> str:
    """A storage in words, without the password that a URL may hold.

    >>> named("postgresql://me:secret@host/name"), named("study.db")
    ('the storage postgresql://host/name', "the storage 'study.db'")
    """
    engine = getattr(getattr(storage, "_backend", storage), "engine", None)
    if engine is not None:
        return named(engine.url.render_as_string(hide_password=True))
    head, mark, rest = str(storage).partition("://")
    if not mark:
        return f"the storage {head!r}"
    return f"the storage {head}://{rest.rpartition('@')[2]}"


def _reason(error: BaseException) -> str:
    """The first line of the error message of the driver."""
    inner: BaseException | None = error
    while inner is not None:
        if getattr(inner, "orig", None) is not None:
            return str(inner.orig).strip().split("\n")[0]  # type: ignore[attr-defined]
        inner = inner.__cause__ or inner.__context__
    return str(error).strip().split("\n")[0]
