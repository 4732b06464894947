"""Commands that write or check the files of the sites and the relay: kits, keys, signed statements."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...core.errors import ParameterError, one_line
from .run import SiteFile, site

if TYPE_CHECKING:
    from ...sites.files.keys import Authority


JobFile = Annotated[Path, typer.Argument(help="The public job file that all parties agreed on.")]


@site.command("kit")
def kit(
    job: JobFile,
    folder: Annotated[Path, typer.Argument(help="The folder in which the command creates these folders.")],
) -> None:
    """Write a folder of files for each party of a job.

    The parties are the sites and, if the job has one, the relay. Each folder has the files that its party
    needs to begin: job.toml, and STEPS.txt with the steps to take. A site's folder also has site.toml. The
    folders contain no keys.
    """
    from ...sites.files.job import load_job
    from ...sites.files.kit import write_kit

    for path in write_kit(job, folder):
        typer.echo(f"wrote {path}")
    typer.echo(f"the job's hash, to be compared by telephone: {load_job(job).hash.hex()[:16]}")


@site.command("keys")
def keys(
    file: SiteFile,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="A host name or address of this machine; by default the one in the job. May be given "
            "more than once.",
        ),
    ] = None,
    throw_away: Annotated[
        Path | None,
        typer.Option(
            help="For tests: the folder of a test authority. The command signs the site's key at once, with "
            "the authority's key in this folder."
        ),
    ] = None,
    self_sign: Annotated[
        bool,
        typer.Option(
            "--self-signed",
            help="Make a self-signed certificate. Use this if the job file lists the sites' keys.",
        ),
    ] = False,
    new_authority: Annotated[
        bool,
        typer.Option(
            "--new-authority", help="With --throw-away: first create the test authority in that folder."
        ),
    ] = False,
) -> None:
    """Make this site's private key and a signing request.

    Send the request to the network's authority: the person who signs the keys of all sites. With
    --self-signed or --throw-away, the command makes a certificate instead of a request.
    """
    from ...sites.files.keys import (
        check_hosts,
        check_new,
        fingerprint,
        new_key,
        pem,
        self_signed,
        short_fingerprint,
        signing_request,
        write_new,
    )
    from ...sites.files.site import load_site
    from ...sites.wire.probe import address

    if new_authority and throw_away is None:
        raise ParameterError("`--new-authority` needs `--throw-away`, the folder for the new authority.")
    if self_sign and throw_away is not None:
        raise ParameterError("give only one of `--self-signed` and `--throw-away`.")
    loaded = load_site(file)
    paths = loaded.file.keys
    endpoint = loaded.job.site(loaded.name).endpoint
    hosts = host or ([address(endpoint)[0]] if endpoint else [])
    private, certificate = loaded.path(paths.private), loaded.path(paths.certificate)
    asked = certificate.with_suffix(".csr")
    check_hosts(hosts)
    check_new(private, certificate if self_sign or throw_away else asked)
    authority = None if throw_away is None else _authority(throw_away, new=new_authority)
    key = new_key(private)
    request = signing_request(key, loaded.name, hosts)
    typer.echo(f"wrote {private}: keep this private key on this machine")
    if self_sign:
        write_new(certificate, self_signed(key, loaded.name, hosts))
        typer.echo(f"wrote {certificate}: send it to all other sites. Each site puts the certificates of")
        typer.echo(f"  all sites, including its own, into one file: {loaded.path(paths.authority).name}")
        typer.echo("compare the key's fingerprint by telephone; write it below the site's name in job.toml:")
        typer.echo(f'  key = "{short_fingerprint(key.public_key())}"')
        return
    if throw_away is None or authority is None:
        write_new(asked, request)
        typer.echo(f"fingerprint of the key, to be read out by telephone: {fingerprint(key.public_key())}")
        typer.echo(f"wrote {asked}: send it to the network's authority. Save the certificate that comes")
        typer.echo(
            f"  back as {certificate}, and the authority's own certificate as {loaded.path(paths.authority)}"
        )
        return
    write_new(certificate, pem(authority.sign(request)))
    typer.echo(f"wrote {certificate}: signed by the key in {throw_away}, which can impersonate any site")
    beside = loaded.path(paths.authority)
    if not beside.exists():
        shutil.copyfile(throw_away / "authority.pem", beside)
        typer.echo(f"wrote {beside}")


@site.command("relay-keys")
def relay_keys(
    job: JobFile,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="A host name or address of the relay; by default the one in the job. May be given more than "
            "once.",
        ),
    ] = None,
) -> None:
    """Make the relay's private key and a signing request.

    A relay passes messages between sites that cannot connect to each other directly.

    The key and the request are written to the folder of job.toml. Send the request to the network's
    authority: the person who signs the keys of all sites.
    """
    from ...sites.files.job import load_job
    from ...sites.files.kit import relay_keys as make
    from ...sites.wire.probe import address

    relay = load_job(job).relay
    hosts = host or ([] if relay is None else [address(relay.endpoint)[0]])
    (private, request), shown = make(job, hosts)
    typer.echo(f"wrote {private}: keep this private key on this machine")
    typer.echo(f"fingerprint of the key, to be read out by telephone: {shown}")
    typer.echo(f"wrote {request}: send this file to the network's authority")


@site.command("sign")
def sign(
    request: Annotated[Path, typer.Argument(help="The signing request of a site, a .csr file.")],
    authority: Annotated[Path, typer.Option(help="The folder with authority.key, the key that signs.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file for the certificate; by default the request's name with the ending .pem."
        ),
    ] = None,
    days: Annotated[
        float, typer.Option(min=0, max=3650, help="How many days the certificate is valid.")
    ] = 30.0,
    yes: Annotated[
        bool, typer.Option("--yes", help="Sign without asking, if you have already compared the fingerprint.")
    ] = False,
) -> None:
    """Sign the key of a site, as the network's authority.

    The command shows the fingerprint of the key in the signing request. Before you sign, ask the sender to
    read the fingerprint to you by telephone, and compare the two.
    """
    from ...sites.files.keys import pem, read_request, write_new

    signer = _authority(authority)
    asked = read_request(request)
    typer.echo(
        f"{request} asks for a certificate for {asked.name}, at {', '.join(map(one_line, asked.hosts))}"
    )
    typer.echo(f"  fingerprint of its key: {asked.fingerprint}")
    if not yes and not typer.confirm("Does the sender read the same fingerprint to you?"):
        typer.echo("nothing was signed")
        raise typer.Exit(1)
    certificate = signer.sign(asked.text, days=days)
    target = out or request.with_suffix(".pem")
    write_new(target, pem(certificate))
    typer.echo(f"wrote {target} for {asked.name}, serial {certificate.serial_number:x}")


@site.command("verify")
def verify(
    authority: Annotated[
        Path,
        typer.Option(
            help="The key certificate of the authority that signed the sites' keys. If the job lists the "
            "keys of the sites, give a file with the key certificates of all sites."
        ),
    ],
    statement: Annotated[
        Path | None,
        typer.Argument(
            help="A site's statement.json; or its stopped.json, if the run ended without a result."
        ),
    ] = None,
    proof: Annotated[
        Path | None,
        typer.Option(
            help="A file proof-*.json: it has two signed messages of one site that contradict each other."
        ),
    ] = None,
) -> None:
    """Verify a file that a site signed.

    The file is a statement or a proof. A statement says what a run cost, and lists the files with its
    results. A proof shows that a site contradicted itself.
    """
    from ...core.formatting import format_cost, format_delta
    from ...privacy.certificate.masked_words import holds_while
    from ...sites.rounds.evidence import read_proof
    from ...sites.rounds.results import files_beside, verify_statement
    from ...sites.wire.trust import reader_trust

    if (statement is None) == (proof is None):
        raise ParameterError("give a statement or `--proof`, and not both.")
    trust = reader_trust(authority)
    if proof is not None:
        caught = read_proof(proof, trust)
        first, second = caught.frames
        when = f"round {caught.t}" if caught.t else "the end"
        typer.echo(f"{one_line(caught.owner)} signed two messages of {when} that contradict each other")
        typer.echo(
            f"  job {first.job.hex()[:16]}, messages {first.digest.hex()[:16]} and {second.digest.hex()[:16]}"
        )
        return
    facts = verify_statement(Path(str(statement)), trust)
    kind = "a rehearsal, not private" if facts["simulated"] else "a real run"
    counted = f"{len(facts['released'])} releases" if "released" in facts else f"{facts['rounds']} rounds"
    if tried := facts.get("attempts"):  # a new attempt, after a site drops out, may repeat a round
        counted = f"{facts['rounds']} releases in {len(tried)} attempts"
    counted = f"at least {counted}" if facts.get("at_least") is True else counted
    typer.echo(one_line(f"signed by {facts['site']}: {counted} of {facts['job']['name']}, {kind}"))
    if left_out := facts.get("left_out"):
        typer.echo(
            one_line(f"{facts['site']} states that it released nothing in {left_out} rounds of the result")
        )
    against = facts.get("epsilon_against")
    held = holds_while(facts.get("colluding"), against[-1]) if against else ""
    least = "at least " if facts.get("at_least") is True else ""
    typer.echo(
        f"epsilon {least}{format_cost(facts['epsilon'])} at delta {format_delta(facts['delta'])}{held}"
    )
    beside = [file.name for file in files_beside(Path(str(statement)), facts)]
    for name in facts["files"]:
        told = (
            "agrees with the statement" if name in beside else "is not in the same folder: it was not checked"
        )
        typer.echo(f"  {name} {told}")


def _authority(folder: Path, *, new: bool = False) -> Authority:
    """Load the authority in a folder. Create one only if `new` is set, because the name may be mistyped."""
    from ...sites.files.keys import Authority

    if new:
        folder.mkdir(parents=True, exist_ok=True)
        Authority.throw_away().save(folder)
        typer.echo(f"made a throw-away authority in {folder}")
    elif not (folder / "authority.key").exists():
        raise ParameterError(
            f"{folder} has no authority.key. To make an authority for tests: taciturn site keys site.toml "
            "--throw-away FOLDER --new-authority"
        )
    return Authority.load(folder)
